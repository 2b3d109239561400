// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// fieldOwner is the owner of the fields that the extension writes.
const fieldOwner = client.FieldOwner(ir.ManagedBy)

// Apply writes an object that holds all the fields that the extension sets. If observed is nil,
// Apply creates the object, and returns an AlreadyExists error if another client has created
// it. Otherwise the write fails with a conflict unless the object still has the observed
// version.
func Apply(ctx context.Context, c client.Client, object *unstructured.Unstructured, observed *Observed) error {
	if observed == nil {
		return errors.Wrap(c.Create(ctx, object, fieldOwner), "cannot create")
	}
	object.SetResourceVersion(observed.Object.GetResourceVersion())
	return errors.Wrap(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldOwner, client.ForceOwnership), "cannot apply")
}

// Delete deletes an object if it still has the observed version.
func Delete(ctx context.Context, c client.Client, observed *Observed) error {
	version, uid := observed.Object.GetResourceVersion(), observed.Object.GetUID()
	err := c.Delete(ctx, observed.Object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return errors.Wrap(client.IgnoreNotFound(err), "cannot delete")
}

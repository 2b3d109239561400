// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ManagedBy says on objects, by ManagedByLabel, and as the owner of their fields, who
// keeps them.
const (
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "tailscale-gateway-extension"

	owner = client.FieldOwner(ManagedBy)
)

// Apply an object that says all that is ours to say. It is created if seen is nil, and
// an error says AlreadyExists if there is one: it is somebody else's. Else it must
// still have the version that was seen.
func Apply(ctx context.Context, c client.Client, u *unstructured.Unstructured, seen *Seen) error {
	if seen == nil {
		return errors.Wrap(c.Create(ctx, u, owner), "cannot create")
	}
	u.SetResourceVersion(seen.Object.GetResourceVersion())
	return errors.Wrap(c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership), "cannot apply")
}

// Delete an object if it still has the version that was seen.
func Delete(ctx context.Context, c client.Client, seen *Seen) error {
	version, uid := seen.Object.GetResourceVersion(), seen.Object.GetUID()
	err := c.Delete(ctx, seen.Object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return errors.Wrap(client.IgnoreNotFound(err), "cannot delete")
}

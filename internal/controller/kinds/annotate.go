// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
)

// Annotate writes an annotation of an object, or removes it if the value is empty. It writes
// nothing if the annotation is already so. It is for facts that must be saved before something is
// written to Tailscale: the managed reconciler writes the status only afterwards. The object's
// status in memory stays as it is. A caller with an old version of the object gets a conflict,
// because an outdated cache would undo the last record.
func Annotate(ctx context.Context, kube client.Client, o client.Object, key, value string) error {
	if o.GetAnnotations()[key] == value {
		return nil
	}
	// A copy, because the answer contains the old status.
	c, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return errors.Errorf("cannot copy a %T", o)
	}
	if value == "" {
		xpmeta.RemoveAnnotations(c, key)
	} else {
		xpmeta.AddAnnotations(c, map[string]string{key: value})
	}
	if err := kube.Patch(ctx, c, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})); err != nil {
		return errors.Wrapf(err, "cannot write annotation %s", key)
	}
	o.SetAnnotations(c.GetAnnotations())
	o.SetResourceVersion(c.GetResourceVersion())
	return nil
}

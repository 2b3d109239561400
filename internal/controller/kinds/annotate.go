// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
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
	setAnnotation(c, key, value)
	if err := kube.Patch(ctx, c, client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})); err != nil {
		return errors.Wrapf(err, "cannot write annotation %s", key)
	}
	o.SetAnnotations(c.GetAnnotations())
	o.SetResourceVersion(c.GetResourceVersion())
	return nil
}

// CorrectAnnotation replaces, or removes, a value that Annotate wrote before a write to Tailscale,
// once Tailscale's answer shows that the value is wrong. Unlike Annotate, it also does so if somebody
// else, such as the user, has changed the rest of the object since: nobody repeats the correction.
// The object in memory keeps its resource version then, so that no later write undoes their change.
// Live reads from the API server.
func CorrectAnnotation(ctx context.Context, kube client.Client, live client.Reader, o client.Object, key, value string) error {
	err := Annotate(ctx, kube, o, key, value)
	if !kerrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	gvk, err := kube.GroupVersionKindFor(o)
	if err != nil {
		return errors.Wrap(err, "cannot find the kind of the object")
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		// Decoding into a copy would keep annotations that somebody has removed.
		c := &metav1.PartialObjectMetadata{}
		c.SetGroupVersionKind(gvk)
		if err := live.Get(ctx, client.ObjectKeyFromObject(o), c); err != nil {
			return errors.Wrap(err, "cannot get the object")
		}
		if c.GetUID() != o.GetUID() || c.GetAnnotations()[key] != o.GetAnnotations()[key] {
			return errors.Errorf("annotation %s has changed", key)
		}
		return Annotate(ctx, kube, c, key, value)
	})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	setAnnotation(o, key, value)
	return nil
}

// setAnnotation sets an annotation, or removes it if the value is empty.
func setAnnotation(o client.Object, key, value string) {
	if value == "" {
		xpmeta.RemoveAnnotations(o, key)
		return
	}
	xpmeta.AddAnnotations(o, map[string]string{key: value})
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// FinalizerState keeps a state Secret readable until the device that it names is gone: otherwise the
// deletion of a namespace would remove the Secret before the Machine is done.
const FinalizerState = "gateway.tailscale.com/machine"

// ReleaseState removes the finalizer from a state Secret. The node still writes to the Secret, so
// the patch names only the finalizer.
func ReleaseState(ctx context.Context, kube client.Client, s *corev1.Secret) error {
	fresh := &corev1.Secret{}
	err := kube.Get(ctx, client.ObjectKeyFromObject(s), fresh)
	if kerrors.IsNotFound(err) || (err == nil && fresh.GetUID() != s.GetUID()) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "cannot get Secret %q", s.GetName())
	}
	original := fresh.DeepCopy()
	if !controllerutil.RemoveFinalizer(fresh, FinalizerState) {
		return nil
	}
	err = kube.Patch(ctx, fresh, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot release Secret %q", s.GetName())
}

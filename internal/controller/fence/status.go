// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// fieldManager owns what the controller writes to the status of VIPServices.
const fieldManager = client.FieldOwner("tailscale-gateway-fence")

// report writes the fence and the condition to the status, unless it says so. Another controller writes the
// rest of it.
func (r *reconciler) report(ctx context.Context, v *v1alpha1.VIPService, o outcome) error {
	previous := v.GetCondition(meta.TypeFencingReady)
	if sameFence(v.Status.AtProvider.Fence, o.fence) && previous.Equal(o.condition) {
		return nil
	}
	if previous.Status == o.condition.Status && previous.Reason == o.condition.Reason {
		o.condition.LastTransitionTime = previous.LastTransitionTime
	}
	condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&o.condition)
	if err != nil {
		return errors.Wrap(err, "cannot convert condition")
	}
	status := map[string]any{"conditions": []any{condition}}
	if o.fence != nil {
		f, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.fence)
		if err != nil {
			return errors.Wrap(err, "cannot convert fence")
		}
		status["atProvider"] = map[string]any{"fence": f}
	}
	if o.fence == nil && v.Status.AtProvider.Fence != nil {
		// Applying a status without it removes a field only if nobody else has written it.
		if err := r.kube.Status().Patch(ctx, v.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"atProvider":{"fence":null}}}`))); err != nil {
			return errors.Wrap(err, "cannot remove the fence from the status")
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(v1alpha1.VIPServiceGroupVersionKind)
	u.SetNamespace(v.GetNamespace())
	u.SetName(v.GetName())
	if err := r.kube.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldManager, client.ForceOwnership); err != nil {
		return errors.Wrap(err, "cannot apply status")
	}
	v.Status.AtProvider.Fence = o.fence
	v.SetConditions(o.condition)
	return nil
}

// sameFence reports whether two fences are of the same host, and end at the same time.
func sameFence(a, b *v1alpha1.HostFence) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.NodeID == b.NodeID && a.ClusterID == b.ClusterID && a.Deadline.Equal(&b.Deadline)
}

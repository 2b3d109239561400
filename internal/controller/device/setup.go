// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
)

// pollUnsettled is how soon an object is looked at again that has no device, or
// is not in charge of it. It costs nothing while the shared list is young.
const pollUnsettled = 15 * time.Second

// Setup adds the controller of Devices to a manager.
func Setup(mgr ctrl.Manager, o common.Options) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Device{}, indexNodeID, byNodeID); err != nil {
		return errors.Wrap(err, "cannot index Devices by node ID")
	}
	shared := newAttributes()
	return kinds.Setup(mgr, o, kinds.Kind[*v1alpha1.Device]{
		GroupVersionKind: v1alpha1.DeviceGroupVersionKind,
		Object:           &v1alpha1.Device{},
		List:             func() resource.ManagedList { return &v1alpha1.DeviceList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.Device) (managed.TypedExternalClient[*v1alpha1.Device], error) {
			return &external{api: c.Client, kube: env.Kube, attributes: shared, now: time.Now}, nil
		},
		Untouched: orphans,
		Poll:      poll,
		Options:   []managed.ReconcilerOption{managed.WithInitializers(managed.InitializerFn(initialize(mgr.GetClient())))},
	})
}

func byNodeID(o client.Object) []string {
	d, ok := o.(*v1alpha1.Device)
	if !ok || nodeID(d) == "" {
		return nil
	}
	return []string{nodeID(d)}
}

// initialize makes the node ID of the spec the external name.
func initialize(kube client.Client) func(ctx context.Context, mg resource.Managed) error {
	return func(ctx context.Context, mg resource.Managed) error {
		d, ok := mg.(*v1alpha1.Device)
		if !ok || xpmeta.WasDeleted(mg) || xpmeta.GetExternalName(mg) == nodeID(d) {
			return nil
		}
		xpmeta.SetExternalName(mg, nodeID(d))
		return errors.Wrap(kube.Update(ctx, mg), "cannot set the external name")
	}
}

// poll decides when a Device is observed again.
func poll(mg resource.Managed, interval time.Duration) time.Duration {
	if mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		return interval
	}
	return min(interval, pollUnsettled)
}

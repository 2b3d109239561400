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
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// pollUnsettled is the poll interval of an object without a device, or whose device another object
// manages. A poll costs no call while the shared list is recent.
const pollUnsettled = 15 * time.Second

// Kind returns how Device objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.Device] {
	shared := newAttributes()
	return kinds.Kind[*v1alpha1.Device]{
		GroupVersionKind: v1alpha1.DeviceGroupVersionKind,
		Object:           &v1alpha1.Device{},
		List:             func() resource.ManagedList { return &v1alpha1.DeviceList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.Device) (managed.TypedExternalClient[*v1alpha1.Device], error) {
			return &external{api: c.Client.Devices(), kube: env.Kube, attributes: shared, clock: time.Now}, nil
		},
		Prepare: func(mgr ctrl.Manager) error {
			return errors.Wrap(mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Device{}, indexNodeID, byNodeID), "cannot index Devices by node ID")
		},
		Records:      []string{annotationAttributes, annotationRoutes},
		Untouched:    leavesDevice,
		Poll:         poll,
		ExternalName: externalName,
	}
}

func byNodeID(o client.Object) []string {
	d, ok := o.(*v1alpha1.Device)
	if !ok || nodeID(d) == "" {
		return nil
	}
	return []string{nodeID(d)}
}

// externalName returns the node ID of the spec. An object that is being deleted keeps its name.
func externalName(d *v1alpha1.Device) string {
	if xpmeta.WasDeleted(d) {
		return xpmeta.GetExternalName(d)
	}
	return nodeID(d)
}

// poll returns when a Device is observed again.
func poll(mg resource.Managed, interval time.Duration) time.Duration {
	if mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		return interval
	}
	return min(interval, pollUnsettled)
}

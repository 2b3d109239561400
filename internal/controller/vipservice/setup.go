// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// pollUnsettled is how soon a service is looked at again that lacks an address
// or a name, or whose hosts are not all online, configured and approved.
const pollUnsettled = 5 * time.Second

// Setup adds the controller of VIPServices to a manager.
func Setup(mgr ctrl.Manager, o common.Options) error {
	connect := clients.NewConnector(mgr.GetClient(), o.Pool)
	kube := mgr.GetClient()
	c := &connector{
		connect: func(ctx context.Context, mg resource.ModernManaged) (connection, error) {
			conn, err := connect.Connect(ctx, mg)
			if err != nil {
				return connection{}, err
			}
			return connection{api: conn.Client, clusterID: conn.ClusterID}, nil
		},
		claims: func(ctx context.Context, namespace, service string) (claims, error) {
			l := &v1alpha1.MachineList{}
			err := kube.List(ctx, l, client.InNamespace(namespace))
			return agentClaims(l.Items, service), err
		},
		hosts:  newHostsCache(hostsMaxAge),
		record: o.Recorder(mgr, v1alpha1.VIPServiceKind),
	}
	r := o.Reconciler(mgr, v1alpha1.VIPServiceGroupVersionKind,
		managed.WithTypedExternalConnector[*v1alpha1.VIPService](c),
		managed.WithInitializers(managed.InitializerFn(initialize(kube))),
		// The name is chosen by the object, so a crash in Create loses nothing.
		managed.WithDeterministicExternalName(true),
		managed.WithCreationGracePeriod(0),
		managed.WithPollIntervalHook(common.Jitter(c.poll)),
	)
	if err := o.RecordState(mgr, &v1alpha1.VIPServiceList{}); err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(managed.ControllerName(v1alpha1.VIPServiceGroupVersionKind.GroupKind().String())).
		WithOptions(o.ForControllerRuntime()).
		For(&v1alpha1.VIPService{}, builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&v1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(forMachine(kube)), builder.WithPredicates(reported()))
	b = clients.WatchMended(b, kube, func() resource.ManagedList { return &v1alpha1.VIPServiceList{} })
	return errors.Wrap(b.Complete(o.Limit(v1alpha1.VIPServiceKind, r)), "cannot set up the controller of VIPServices")
}

// initialize makes the service's name in the tailnet the external name.
func initialize(kube client.Client) func(ctx context.Context, mg resource.Managed) error {
	return func(ctx context.Context, mg resource.Managed) error {
		v, ok := mg.(*v1alpha1.VIPService)
		if !ok || xpmeta.GetExternalName(mg) == string(v.Spec.ForProvider.Name) {
			return nil
		}
		xpmeta.SetExternalName(mg, string(v.Spec.ForProvider.Name))
		return errors.Wrap(kube.Update(ctx, mg), "cannot set the external name")
	}
}

// poll decides when a VIPService is observed again.
func (c *connector) poll(mg resource.Managed, interval time.Duration) time.Duration {
	v, ok := mg.(*v1alpha1.VIPService)
	if !ok {
		return interval
	}
	if v.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue || v.Status.AtProvider.DNSName == "" || c.hosts.waiting(v.GetUID()) {
		return min(interval, pollUnsettled)
	}
	for _, h := range v.Status.AtProvider.Hosts {
		if h.Online && (!h.Configured || !tailscale.Host{Approval: h.Approval}.Approved()) {
			return min(interval, pollUnsettled)
		}
	}
	return interval
}

// reported lets machines through whose agent or node has news.
func reported() predicate.Predicate {
	return predicate.Funcs{
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			o, ok := e.ObjectOld.(*v1alpha1.Machine)
			n, ok2 := e.ObjectNew.(*v1alpha1.Machine)
			if !ok || !ok2 {
				return false
			}
			return !equality.Semantic.DeepEqual(o.Status.Agent, n.Status.Agent) || !equality.Semantic.DeepEqual(o.Status.AtProvider, n.Status.AtProvider)
		},
	}
}

// forMachine finds the VIPServices that a machine's agent speaks about.
func forMachine(kube client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		m, ok := o.(*v1alpha1.Machine)
		if !ok || m.Status.Agent == nil {
			return nil
		}
		told := map[string]bool{}
		for _, s := range m.Status.Agent.Services {
			told[s.Name] = true
		}
		l := &v1alpha1.VIPServiceList{}
		if err := kube.List(ctx, l, client.InNamespace(m.GetNamespace())); err != nil {
			// The list comes from a cache; the next poll finds them anyway.
			return nil
		}
		var rs []reconcile.Request
		for _, v := range l.Items {
			if told[string(v.Spec.ForProvider.Name)] {
				rs = append(rs, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: v.GetNamespace(), Name: v.GetName()}})
			}
		}
		return rs
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// pollUnsettled is the poll interval of a service that lacks an address or a name.
const pollUnsettled = 5 * time.Second

// Kind returns how VIPService objects are managed.
func Kind(o setup.Options) kinds.Kind[*v1alpha1.VIPService] {
	detaching := newDetaching()
	hosts, ports := newHostsCache(o.PollInterval, clock.RealClock{}), newPortsCache()
	return kinds.Kind[*v1alpha1.VIPService]{
		GroupVersionKind: v1alpha1.VIPServiceGroupVersionKind,
		Object:           &v1alpha1.VIPService{},
		List:             func() resource.ManagedList { return &v1alpha1.VIPServiceList{} },
		Requires:         []schema.GroupVersionKind{v1alpha1.MachineGroupVersionKind},
		Connector: func(env kinds.Env, connect kinds.Connect) managed.TypedExternalConnector[*v1alpha1.VIPService] {
			return &connector{
				connect: func(ctx context.Context, mg resource.ModernManaged) (connection, error) {
					c, err := connect(ctx, mg)
					if err != nil {
						return connection{}, err
					}
					return connection{api: &api{services: c.Client.Services(), devices: c.Client.Devices(), tailnet: c.Client.Tailnet()}, clusterID: c.ClusterID, clusterSet: c.ClusterSet, tailnet: mg.GetProviderConfigReference().Name, memory: c.Memory}, nil
				},
				reports:   readReports(env.Kube),
				lives:     ownerExists(env.Kube),
				pods:      kubePods{kube: env.Kube},
				hosts:     hosts,
				ports:     ports,
				detaching: detaching,
				record:    env.Record,
			}
		},
		Poll:         poll(hosts, ports),
		ExternalName: func(v *v1alpha1.VIPService) string { return string(v.Spec.ForProvider.Name) },
		Wrap: func(r reconcile.Reconciler) reconcile.Reconciler {
			return &paced{Reconciler: r, detaching: detaching}
		},
		Watch: func(b *builder.Builder, env kinds.Env) *builder.Builder {
			return b.Watches(&v1alpha1.Machine{}, machineEvents(env.Kube), builder.WithPredicates(reported())).
				Watches(&v1alpha1.VIPService{}, forgetting(hosts))
		},
	}
}

// forgetting returns a handler that forgets the hosts of services whose objects are gone. The
// controller does not observe the deletion of an object without the policy Delete.
func forgetting(hosts *hostsCache) handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		hosts.forget(e.Object.GetUID())
		hosts.forget(ownUID(e.Object.GetUID()))
	}}
}

// poll returns when a VIPService is observed again.
func poll(hosts *hostsCache, ports *portsCache) managed.PollIntervalHook {
	return func(mg resource.Managed, interval time.Duration) time.Duration {
		v, ok := mg.(*v1alpha1.VIPService)
		if !ok {
			return interval
		}
		if v.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue || v.Status.AtProvider.DNSName == "" {
			return min(interval, pollUnsettled)
		}
		if v.GetCondition(meta.TypeRouted).Status == corev1.ConditionFalse {
			interval = min(interval, pollUnrouted)
		}
		switch v.GetCondition(meta.TypeDrained).Reason {
		case meta.ReasonDrainAnnounced, meta.ReasonHostsWithdrawing:
			interval = min(interval, pollUnsettled)
		case meta.ReasonNoOtherCluster, meta.ReasonHostsWithdrawn:
			interval = min(interval, pollPorts)
		}
		interval = ports.next(v.GetUID(), interval)
		return min(interval, hosts.next(v.GetUID(), interval), hosts.next(ownUID(v.GetUID()), interval))
	}
}

// reported returns a predicate that passes machines with a new report of the agent or a new node.
func reported() predicate.Predicate {
	return predicate.Funcs{
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			o, ok := e.ObjectOld.(*v1alpha1.Machine)
			n, ok2 := e.ObjectNew.(*v1alpha1.Machine)
			if !ok || !ok2 {
				return false
			}
			return nodeChanged(o, n) || onlineChanged(o, n) || !equality.Semantic.DeepEqual(o.Status.Agent, n.Status.Agent)
		},
	}
}

// joinTime is how long a further host of a served service waits for others, so that the hosts that join
// together are one change of the status. Each change is several writes of composites that show it.
const joinTime = 2 * time.Second

// served reports whether a machine hosts a service already.
func served(v *v1alpha1.VIPService) bool {
	return slices.ContainsFunc(v.Status.AtProvider.Hosts, v1alpha1.ServiceHost.Serves)
}

// joins reports whether a machine did not host a service before, and does not give it up. Everything
// else must be seen at once.
func joins(old, updated v1alpha1.HostedService) bool {
	return !old.Advertised || !old.Accepted && updated.Advertised
}

// machineEvents returns a handler that finds the VIPServices in the report of a machine's agent.
// When a machine changes, it finds only those whose part of the report changed, because a machine
// may host a thousand.
func machineEvents(kube client.Reader) handler.EventHandler {
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		m, ok := o.(*v1alpha1.Machine)
		if !ok {
			return nil
		}
		var out []reconcile.Request
		for _, v := range servicesNamed(ctx, kube, m.GetNamespace(), changedServices(&v1alpha1.Machine{}, m)) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(v)})
		}
		return out
	})
	return handler.Funcs{
		CreateFunc: all.Create,
		DeleteFunc: all.Delete,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			o, ok := e.ObjectOld.(*v1alpha1.Machine)
			n, ok2 := e.ObjectNew.(*v1alpha1.Machine)
			if !ok || !ok2 {
				return
			}
			old, updated := hostedServices(o), hostedServices(n)
			for _, v := range servicesNamed(ctx, kube, n.GetNamespace(), changedServices(o, n)) {
				r, name := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(v)}, string(v.Spec.ForProvider.Name)
				if served(v) && joins(old[name], updated[name]) {
					q.AddAfter(r, joinTime)
					continue
				}
				q.Add(r)
			}
		},
	}
}

// changedServices returns the names of the services for which a machine has changed: all of its
// services if its node has changed, and those that it advertises if it went on- or offline.
func changedServices(o, n *v1alpha1.Machine) map[string]bool {
	old, updated := hostedServices(o), hostedServices(n)
	node, online := nodeChanged(o, n), onlineChanged(o, n)
	out := map[string]bool{}
	for name, s := range old {
		if current, ok := updated[name]; node || !ok || online && s.Advertised || !equality.Semantic.DeepEqual(s, current) {
			out[name] = true
		}
	}
	for name := range updated {
		if _, ok := old[name]; node || !ok {
			out[name] = true
		}
	}
	return out
}

// nodeChanged reports whether a machine has another node, or whether facts about the node have
// changed that a service's status or approval depends on. The others, such as when the node was last
// seen, concern no service.
func nodeChanged(o, n *v1alpha1.Machine) bool {
	return meta.NodeIDOf(o) != meta.NodeIDOf(n) || o.Status.AtProvider.Name != n.Status.AtProvider.Name ||
		!slices.Equal(o.Status.AtProvider.Tags, n.Status.AtProvider.Tags)
}

// onlineChanged reports whether a machine went on- or offline. Services list the machines that
// advertise them.
func onlineChanged(o, n *v1alpha1.Machine) bool {
	return !ptr.Equal(o.Status.AtProvider.Online, n.Status.AtProvider.Online)
}

func hostedServices(m *v1alpha1.Machine) map[string]v1alpha1.HostedService {
	if m.Status.Agent == nil {
		return nil
	}
	out := make(map[string]v1alpha1.HostedService, len(m.Status.Agent.Services))
	for _, s := range m.Status.Agent.Services {
		out[s.Name] = s
	}
	return out
}

// servicesNamed returns the VIPServices of a namespace that have one of the names in the tailnet. They
// must not be changed.
func servicesNamed(ctx context.Context, kube client.Reader, namespace string, names map[string]bool) []*v1alpha1.VIPService {
	if len(names) == 0 {
		return nil
	}
	l := &v1alpha1.VIPServiceList{}
	if err := kube.List(ctx, l, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		// The list comes from a cache; the next poll repeats the observation anyway.
		return nil
	}
	var out []*v1alpha1.VIPService
	for i := range l.Items {
		if v := &l.Items[i]; names[string(v.Spec.ForProvider.Name)] {
			out = append(out, v)
		}
	}
	return out
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

const namespace = "shop"

var stopped = metav1.NewTime(time.Unix(1000, 0))

// A change changes a Machine.
type change func(*v1alpha1.Machine)

// machine returns a machine that hosts svc:web.
func machine(name string, changes ...change) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name),
			Labels:          map[string]string{meta.LabelMachineSet: "web"},
			Annotations:     map[string]string{meta.AnnotationNodeID: "node-" + name},
			OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.MachineSetKind, Name: "web", UID: "set", Controller: ptr.To(true)}},
		},
		Spec: v1alpha1.MachineSpec{ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "home"}}},
		Status: v1alpha1.MachineStatus{
			AtProvider: v1alpha1.MachineObservation{Online: ptr.To(true)},
			Agent:      &v1alpha1.MachineAgentStatus{Services: []v1alpha1.HostedService{{Name: "svc:web", Advertised: true, Accepted: true}}},
		},
	}
	for _, c := range changes {
		c(m)
	}
	return m
}

func stops(delay time.Duration) change {
	return func(m *v1alpha1.Machine) { m.Status.Agent.StoppingSince = ptr.To(metav1.NewTime(stopped.Add(delay))) }
}

func service(fn func(*v1alpha1.HostedService)) change {
	return func(m *v1alpha1.Machine) { fn(&m.Status.Agent.Services[0]) }
}

func set(machines ...string) *v1alpha1.MachineSet {
	s := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "set"}}
	for _, m := range machines {
		s.Spec.Machines = append(s.Spec.Machines, v1alpha1.MachineSetMember{Name: m})
	}
	return s
}

// vipService returns svc:web of a tailnet with a host.
func vipService(tailnet string, h v1alpha1.ServiceHost) v1alpha1.VIPService {
	v := v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	v.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: tailnet}
	v.Spec.ForProvider.Name = "svc:web"
	v.Status.AtProvider.Hosts = []v1alpha1.ServiceHost{h}
	return v
}

func TestReleased(t *testing.T) {
	var none []string
	web := []string{"svc:web"}
	remote := v1alpha1.ServiceHost{NodeID: "far", Online: true, Configured: true, Approval: "approved:auto"}
	cases := map[string]struct {
		reason string
		world  world
		// m is web-0, unless it is set.
		m    *v1alpha1.Machine
		want []string
		// hosted are those of want that have another host.
		hosted []string
	}{
		"Other": {
			reason: "Another host is advertised and accepted.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1")}},
			want:   web,
			hosted: web,
		},
		"OtherSet": {
			reason: "A host of another zone counts as well.",
			world:  world{set: set("web-0"), machines: []v1alpha1.Machine{*machine("zone-b-0", func(m *v1alpha1.Machine) { m.Labels = nil })}},
			want:   web,
			hosted: web,
		},
		"Successor": {
			reason: "The pod that takes the place of an earlier one is not accepted yet.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", service(func(s *v1alpha1.HostedService) { s.Accepted = false }))}},
			want:   none,
		},
		"NotAdvertised": {
			reason: "An approval alone does not make a host.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", service(func(s *v1alpha1.HostedService) { s.Advertised = false }))}},
			want:   none,
		},
		"StoppedBefore": {
			reason: "A machine that was stopped before withdraws the service, whatever it reported last.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", stops(-45*time.Second))}},
			want:   none,
		},
		"StoppedLater": {
			reason: "A machine that was stopped later waits for the successor of this one.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", stops(time.Second))}},
			want:   web,
			hosted: web,
		},
		"Together": {
			reason: "The first of two machines that were stopped together hands over to the last one.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", stops(0))}},
			want:   web,
			hosted: web,
		},
		"TogetherLast": {
			reason: "The last one waits.",
			m:      machine("web-1", stops(0)),
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-0", stops(0))}},
			want:   none,
		},
		"Offline": {
			reason: "A machine that is not connected is no host.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", func(m *v1alpha1.Machine) { m.Status.AtProvider.Online = ptr.To(false) })}},
			want:   none,
		},
		"Single": {
			reason: "No other host will come.",
			world:  world{set: set("web-0"), machines: []v1alpha1.Machine{*machine("web-0", stops(0))}},
			want:   web,
		},
		"New": {
			reason: "A machine of the set that has not reported yet may become a host.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", func(m *v1alpha1.Machine) { m.Status.Agent = nil })}},
			want:   none,
		},
		"OtherService": {
			reason: "A machine with other services will not become a host.",
			world:  world{set: set("web-0"), machines: []v1alpha1.Machine{*machine("db-0", service(func(s *v1alpha1.HostedService) { s.Name = "svc:db" }))}},
			want:   web,
		},
		"OtherTailnet": {
			reason: "A service of this name in another tailnet is another one.",
			world: world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{
				*machine("other-0", func(m *v1alpha1.Machine) {
					m.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "work"}
				}),
				*machine("web-1", stops(-time.Second)),
			}, services: []v1alpha1.VIPService{vipService("work", remote)}},
			want: none,
		},
		"OtherCluster": {
			reason: "A host of another cluster counts.",
			world:  world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", stops(-time.Second))}, services: []v1alpha1.VIPService{vipService("home", remote)}},
			want:   web,
			hosted: web,
		},
		"OtherClusterPending": {
			reason: "One that is not approved does not.",
			world: world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", stops(-time.Second))}, services: []v1alpha1.VIPService{
				vipService("home", v1alpha1.ServiceHost{NodeID: "far", Online: true, Configured: true, Approval: "not-approved"}),
			}},
			want: none,
		},
		"OwnEntry": {
			reason: "The API's entry of a machine that was stopped before says nothing.",
			world: world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", stops(-time.Second))}, services: []v1alpha1.VIPService{
				vipService("home", v1alpha1.ServiceHost{NodeID: "node-web-1", Local: true, Online: true, Configured: true, Approval: "approved:auto"}),
			}},
			want: none,
		},
		"AcceptanceUnknown": {
			reason: "The API knows whether a machine with an old tailscaled is approved.",
			world: world{set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", func(m *v1alpha1.Machine) {
				m.Status.Agent.AcceptanceUnknown, m.Status.Agent.Services[0].Accepted = true, false
			})}, services: []v1alpha1.VIPService{
				vipService("home", v1alpha1.ServiceHost{NodeID: "node-web-1", Local: true, Online: true, Configured: true, Approval: "approved:auto"}),
			}},
			want:   web,
			hosted: web,
		},
		"ScaledIn": {
			reason: "Nobody takes the place of a machine that the set does not list any more.",
			m:      machine("web-1", stops(0)),
			world:  world{set: set("web-0"), machines: []v1alpha1.Machine{*machine("web-0", stops(-time.Second))}},
			want:   web,
		},
		"Ending": {
			reason: "The namespace is being deleted.",
			world:  world{ending: true, set: set("web-0", "web-1"), machines: []v1alpha1.Machine{*machine("web-1", stops(-time.Second))}},
			want:   web,
		},
		"Orphaned": {
			reason: "The set is gone.",
			world:  world{orphaned: true, machines: []v1alpha1.Machine{*machine("web-1", stops(-time.Second))}},
			want:   web,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := tc.m
			if m == nil {
				m = machine("web-0", stops(0))
			}
			got, hosted := tc.world.released(m)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nreleased(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.hosted, hosted); diff != "" {
				t.Errorf("\n%s\nreleased(...): hosted: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReconcile(t *testing.T) {
	errBoom := errors.New("boom")
	config := func(owner *v1alpha1.Machine) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "web-0-config", Annotations: map[string]string{"kept": "true"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Machine", Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}},
		}}
	}
	answer := func(hosted []string, services ...string) string {
		b, err := json.Marshal(meta.Handover{StopTime: stopped, Services: services, Hosted: hosted})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	type want struct {
		Answer  string
		Requeue time.Duration
		Failed  bool
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		late    time.Duration
		fail    bool
		// ending deletes the namespace, and forbidden is the answer to a request for it.
		ending, forbidden bool
		want              want
	}{
		"Handed": {
			reason:  "The machine should learn that another one has its service.",
			objects: []client.Object{set("web-0", "web-1"), machine("web-0", stops(0)), machine("web-1"), config(machine("web-0"))},
			want:    want{Answer: answer([]string{"svc:web"}, "svc:web")},
		},
		"Waiting": {
			reason:  "Without another host, it should look again.",
			objects: []client.Object{set("web-0", "web-1"), machine("web-0", stops(0)), machine("web-1", stops(-time.Second)), config(machine("web-0"))},
			want:    want{Answer: answer(nil), Requeue: pollInterval},
		},
		"NamespaceDeleted": {
			reason:  "No pod follows in a namespace that is being deleted.",
			objects: []client.Object{set("web-0", "web-1"), machine("web-0", stops(0)), machine("web-1", stops(-time.Second)), config(machine("web-0"))},
			ending:  true,
			want:    want{Answer: answer(nil, "svc:web")},
		},
		"NamespaceUnknown": {
			reason:    "Without the permission to read the namespace, another pod may follow.",
			objects:   []client.Object{set("web-0", "web-1"), machine("web-0", stops(0)), machine("web-1", stops(-time.Second)), config(machine("web-0"))},
			forbidden: true,
			want:      want{Answer: answer(nil), Requeue: pollInterval},
		},
		"Running": {
			reason:  "A machine that is not stopping gets no answer.",
			objects: []client.Object{set("web-0", "web-1"), machine("web-0"), machine("web-1"), config(machine("web-0"))},
		},
		"Lost": {
			reason:  "A pod that was stopped long ago needs no answer.",
			objects: []client.Object{set("web-0", "web-1"), machine("web-0", stops(0)), machine("web-1"), config(machine("web-0"))},
			late:    time.Hour,
		},
		"Future": {
			reason:  "A time that no pod can know is not one to wait for.",
			objects: []client.Object{set("web-0", "web-1"), machine("web-0", stops(time.Hour)), machine("web-1"), config(machine("web-0"))},
		},
		"SetGone": {
			reason:  "A machine whose set is gone need not wait.",
			objects: []client.Object{machine("web-0", stops(0)), machine("web-1", stops(-time.Second)), config(machine("web-0"))},
			want:    want{Answer: answer(nil, "svc:web")},
		},
		"Foreign": {
			reason:  "A Secret of somebody else should stay unchanged.",
			objects: []client.Object{set("web-0", "web-1"), machine("web-0", stops(0)), machine("web-1"), config(machine("web-2"))},
			want:    want{Failed: true},
		},
		"ListFails": {
			reason:  "Other hosts that cannot be read are not absent.",
			objects: []client.Object{set("web-0"), machine("web-0", stops(0)), config(machine("web-0"))},
			fail:    true,
			want:    want{Failed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := errors.Join(corev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
				t.Fatal(err)
			}
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
			if tc.ending {
				ns.DeletionTimestamp, ns.Finalizers = &stopped, []string{"kubernetes"}
			}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(append(tc.objects, ns)...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tc.forbidden && key.Namespace == "" {
						return kerrors.NewForbidden(corev1.Resource("namespaces"), key.Name, errBoom)
					}
					return c.Get(ctx, key, o, opts...)
				},
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
					if tc.fail {
						return errBoom
					}
					return c.List(ctx, l, o...)
				},
			}).Build()
			r := &reconciler{kube: kube, live: kube, log: logging.NewNopLogger(), clock: func() time.Time { return stopped.Add(tc.late) }, endings: cache.NewExpiring()}
			key := types.NamespacedName{Namespace: namespace, Name: "web-0"}
			res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			got := &corev1.Secret{}
			if err := kube.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web-0-config"}, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, want{Answer: got.GetAnnotations()[meta.AnnotationHandover], Requeue: res.RequeueAfter, Failed: err != nil}); diff != "" {
				t.Errorf("\n%s\nReconcile(...): -want, +got:\n%s\nerror: %v", tc.reason, diff, err)
			}
			if got.GetAnnotations()["kept"] == "" {
				t.Error("other annotations must stay")
			}
		})
	}
}

func TestStopping(t *testing.T) {
	p := stopping()
	cases := map[string]struct {
		reason       string
		old, updated *v1alpha1.Machine
		want         bool
	}{
		"Begins":  {reason: "A machine that begins to stop needs an answer.", old: machine("web-0"), updated: machine("web-0", stops(0)), want: true},
		"Again":   {reason: "So does one that is stopped again.", old: machine("web-0", stops(0)), updated: machine("web-0", stops(time.Minute)), want: true},
		"Same":    {reason: "Other changes are looked for regularly.", old: machine("web-0", stops(0)), updated: machine("web-0", stops(0))},
		"Running": {reason: "A machine that runs needs no answer.", old: machine("web-0", stops(0)), updated: machine("web-0")},
		"Silent":  {reason: "A machine without a report does not stop.", old: machine("web-0"), updated: machine("web-0", func(m *v1alpha1.Machine) { m.Status.Agent = nil })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := p.Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.updated}); got != tc.want {
				t.Errorf("\n%s\nUpdate(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

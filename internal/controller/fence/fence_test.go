// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	namespace = "shop"
	service   = "svc:web"
)

var testTime = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// A tailnet is the part of a tailnet's API that fences need.
type tailnet struct {
	services map[string]tailscale.Service
	approved map[string]bool

	// auto reports that autoApprovers win over a refusal, and refuses is the error of a refusal.
	auto    bool
	refuses error
	calls   int

	// late is what the second cluster writes while this one writes a fence.
	late *registry.Fencing
}

func (n *tailnet) Service(_ context.Context, name string) (*tailscale.Service, error) {
	n.calls++
	s, ok := n.services[name]
	if !ok {
		return nil, &tailscale.Error{Class: tailscale.ClassNotFound}
	}
	return &s, nil
}

func (n *tailnet) PutService(_ context.Context, s tailscale.Service) (*tailscale.Service, error) {
	n.calls++
	n.services[s.Name] = s
	if r, _, err := registry.RecordOf(&s); err == nil && n.late != nil && r.Fencing != nil && r.Fencing.Fence != nil {
		name := registry.RecordName(service, "two")
		theirs, _, err := registry.SetFencing(n.services[name], *n.late, testTime)
		if err != nil {
			return nil, err
		}
		n.services[name] = theirs
	}
	return &s, nil
}

func (n *tailnet) ServicesAt(context.Context, tailscale.Staleness) ([]tailscale.Service, time.Time, error) {
	return nil, testTime, nil
}

func (n *tailnet) HostApproval(_ context.Context, _, id string) (tailscale.HostApproval, error) {
	n.calls++
	return tailscale.HostApproval{Approved: n.auto || n.approved[id], AutoApproved: n.auto}, nil
}

func (n *tailnet) ApproveHost(_ context.Context, _, id string) (bool, error) {
	n.calls++
	n.approved[id] = true
	return true, nil
}

func (n *tailnet) RefuseHost(_ context.Context, _, id string) (bool, error) {
	n.calls++
	if n.refuses != nil {
		return true, n.refuses
	}
	n.approved[id] = false
	return n.auto, nil
}

var config = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "home"}

// machine returns a machine on a Kubernetes node that reports about hosts, HOST=STATE.
func machine(name, node string, watches ...string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Annotations: map[string]string{meta.AnnotationNodeID: "n-" + name}},
		Spec:       v1alpha1.MachineSpec{ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: config}},
		Status:     v1alpha1.MachineStatus{AtProvider: v1alpha1.MachineObservation{Tags: []string{"tag:k8s"}}, Agent: &v1alpha1.MachineAgentStatus{NodeName: node}},
	}
	for _, w := range watches {
		host, state, _ := strings.Cut(w, "=")
		m.Status.Agent.Watches = append(m.Status.Agent.Watches, v1alpha1.WatchedHost{NodeID: host, State: v1alpha1.WatchState(state)})
	}
	return m
}

// leaves returns a machine whose pod is being stopped.
func leaves(m *v1alpha1.Machine) *v1alpha1.Machine {
	m.Status.Agent.StoppingSince = &metav1.Time{Time: testTime}
	return m
}

func vip(changes ...func(*v1alpha1.VIPService)) *v1alpha1.VIPService {
	v := &v1alpha1.VIPService{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: v1alpha1.VIPServiceSpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: config},
			ForProvider:         v1alpha1.VIPServiceParameters{Name: service, Ports: []v1alpha1.ServicePort{"tcp:80"}, Fencing: true},
		},
	}
	for _, name := range []string{"a", "b", "c"} {
		v.Status.AtProvider.Hosts = append(v.Status.AtProvider.Hosts, v1alpha1.ServiceHost{NodeID: "n-" + name, Name: name, Online: true, Configured: true, Approval: "approved:manual"})
	}
	v.Status.AtProvider.Name = service
	for _, fn := range changes {
		fn(v)
	}
	return v
}

// fenced fences a host of a service.
func fenced(host string) func(*v1alpha1.VIPService) {
	return func(v *v1alpha1.VIPService) {
		v.Status.AtProvider.Fence = &v1alpha1.HostFence{NodeID: host, ClusterID: "one", Deadline: metav1.NewTime(testTime.Add(time.Minute))}
		v.SetConditions(ready(corev1.ConditionTrue, meta.ReasonHostFenced, ""))
	}
}

// shared shares a service with a second cluster that has a machine.
func shared(v *v1alpha1.VIPService) {
	v.Spec.ForProvider.Sharing = v1alpha1.SharingShared
	v.Status.AtProvider.OwnServiceName = registry.RecordName(service, "one")
	v.Status.AtProvider.Hosts = v.Status.AtProvider.Hosts[:2]
	v.Status.AtProvider.Hosts = append(v.Status.AtProvider.Hosts, v1alpha1.ServiceHost{NodeID: "n-far", Name: "far", Online: true, Configured: true, Approval: "approved:manual"})
	v.Status.AtProvider.Consumers = []v1alpha1.ServiceConsumer{
		{ClusterID: "one", ServiceName: registry.RecordName(service, "one"), Fencing: true, Online: true, NodeIDs: []string{"n-a", "n-b"}},
		{ClusterID: "two", ServiceName: registry.RecordName(service, "two"), Fencing: true, Online: true, NodeIDs: []string{"n-far"}},
	}
}

// recordOf returns the service with a cluster's record.
func recordOf(t *testing.T, cluster string, f registry.Fencing) tailscale.Service {
	t.Helper()
	name := registry.RecordName(service, cluster)
	s := tailscale.Service{Name: name, Annotations: map[string]string{
		meta.AnnotationSchemaVersion: meta.SchemaVersion, meta.AnnotationSharedService: service,
		meta.AnnotationRecord: `{"service":"` + service + `","cluster":"` + cluster + `","operator":"shop/web","updated":"2026-11-29T12:00:00Z"}`,
	}}
	out, _, err := registry.SetFencing(s, f, testTime)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestReconcile checks what the controller does about a service.
func TestReconcile(t *testing.T) {
	type want struct {
		approved  map[string]bool
		fence     string
		condition xpv2.ConditionReason
		status    corev1.ConditionStatus
		pause     time.Duration
		idle      bool // No request to Tailscale's API.
	}
	all := map[string]bool{"n-a": true, "n-b": true, "n-c": true}
	alive := []client.Object{
		machine("a", "k1", "n-b=Alive", "n-c=Alive"), machine("b", "k2", "n-a=Alive", "n-c=Alive"), machine("c", "k3", "n-a=Alive", "n-b=Alive"),
	}
	lost := []client.Object{machine("a", "k1", "n-b=Alive", "n-c=Alive"), machine("b", "k2", "n-a=Lost", "n-c=Alive"), machine("c", "k3", "n-a=Lost", "n-b=Alive")}
	cases := map[string]struct {
		reason   string
		vip      *v1alpha1.VIPService
		machines []client.Object
		tailnet  tailnet
		theirs   registry.Fencing
		standby  bool
		want     want
		err      bool
	}{
		"Alive": {
			reason: "While all answer, nothing is asked of Tailscale's API.", vip: vip(), machines: alive,
			want: want{approved: all, condition: meta.ReasonHostsWatched, status: corev1.ConditionTrue, idle: true},
		},
		"Lost": {
			reason: "A host that its witnesses have lost is fenced.", vip: vip(), machines: lost,
			want: want{approved: map[string]bool{"n-a": false, "n-b": true, "n-c": true}, fence: "n-a", condition: meta.ReasonHostFenced, status: corev1.ConditionTrue, pause: pollFenced},
		},
		"Standby": {
			reason: "A replica without the lease does nothing.", vip: vip(), machines: lost, standby: true,
			want: want{approved: all, idle: true},
		},
		"NotFencing": {
			reason: "Without fencing, nothing happens.", vip: vip(func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Fencing = false }), machines: lost,
			want: want{approved: all, idle: true},
		},
		"AutoApprovers": {
			reason: "A tailnet that approves the host again cannot fence.", vip: vip(), machines: lost, tailnet: tailnet{auto: true},
			want: want{approved: all, condition: meta.ReasonFencingUnavailable, status: corev1.ConditionFalse, pause: tryAgain},
		},
		"AutoApproversAgain": {
			reason: "It is not asked again at once, nor are other clusters each second.", machines: lost, tailnet: tailnet{auto: true},
			vip: vip(func(v *v1alpha1.VIPService) {
				v.SetConditions(at(ready(corev1.ConditionFalse, meta.ReasonFencingUnavailable, ""), testTime.Add(-time.Minute)))
			}),
			want: want{approved: all, condition: meta.ReasonFencingUnavailable, status: corev1.ConditionFalse, pause: pollSuspectedLater, idle: true},
		},
		"APIFails": {
			reason: "A fence whose approval could not be withdrawn is tried again, and nobody approves the host until then.", vip: vip(), machines: lost,
			tailnet: tailnet{refuses: &tailscale.Error{Class: tailscale.ClassUnavailable}},
			want:    want{approved: all, fence: "n-a", condition: meta.ReasonHostFenced, status: corev1.ConditionTrue}, err: true,
		},
		"TriedAgain": {
			reason: "The approval of a fenced host is withdrawn once the API answers.", vip: vip(fenced("n-a")), machines: lost,
			want: want{approved: map[string]bool{"n-a": false, "n-b": true, "n-c": true}, fence: "n-a", condition: meta.ReasonHostFenced, status: corev1.ConditionTrue, pause: pollFenced},
		},
		"Answers": {
			reason: "A fenced host that answers is approved again.", vip: vip(fenced("n-a")), machines: alive, tailnet: tailnet{approved: map[string]bool{"n-b": true, "n-c": true}},
			want: want{approved: all, condition: meta.ReasonHostsWatched, status: corev1.ConditionTrue},
		},
		"TurnedOff": {
			reason: "Without fencing, a fence ends.", vip: vip(fenced("n-a"), func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Fencing = false }), machines: lost, tailnet: tailnet{approved: map[string]bool{"n-b": true, "n-c": true}},
			want: want{approved: all, condition: meta.ReasonNotRequested, status: corev1.ConditionUnknown},
		},
		"Stopping": {
			reason: "A pod that is being stopped does not answer, and is not fenced.", vip: vip(), machines: append([]client.Object{leaves(machine("a", "k1"))}, lost[1:]...),
			want: want{approved: all, condition: meta.ReasonNotEnoughWitnesses, status: corev1.ConditionFalse, idle: true},
		},
		"StoppingElsewhere": {
			reason: "Another cluster says in its record that a pod is being stopped.", vip: vip(shared), machines: []client.Object{machine("a", "k1", "n-b=Alive", "n-far=Lost"), machine("b", "k2", "n-a=Alive", "n-far=Lost")},
			theirs: registry.Fencing{Leaving: []string{"n-far"}},
			want:   want{approved: all, condition: meta.ReasonHostLost, status: corev1.ConditionTrue, pause: pollSuspected},
		},
		"NoFencingElsewhere": {
			reason: "A host of a cluster without fencing is left alone.", machines: []client.Object{machine("a", "k1", "n-b=Alive", "n-far=Lost"), machine("b", "k2", "n-a=Alive", "n-far=Lost")},
			vip:  vip(shared, func(v *v1alpha1.VIPService) { v.Status.AtProvider.Consumers[1].Fencing = false }),
			want: want{approved: all, condition: meta.ReasonNotEnoughWitnesses, status: corev1.ConditionFalse},
		},
		"BothAtOnce": {
			reason: "Of two clusters that fence at the same time, one sees the other, and gives way.", vip: vip(shared), machines: []client.Object{machine("a", "k1", "n-b=Alive", "n-far=Lost"), machine("b", "k2", "n-a=Alive", "n-far=Lost")},
			tailnet: tailnet{late: &registry.Fencing{Fence: &fence.Fence{Node: "n-a", Cluster: "two", Deadline: testTime.Add(time.Minute)}}},
			want:    want{approved: all, condition: meta.ReasonHostLost, status: corev1.ConditionTrue, pause: pollSuspected},
		},
		"Paused": {
			reason: "A paused object stays as it is, with its fence.", machines: lost, tailnet: tailnet{approved: map[string]bool{"n-b": true, "n-c": true}},
			vip:  vip(fenced("n-a"), func(v *v1alpha1.VIPService) { v.SetAnnotations(map[string]string{"crossplane.io/paused": "true"}) }),
			want: want{approved: map[string]bool{"n-b": true, "n-c": true}, fence: "n-a", condition: meta.ReasonHostFenced, status: corev1.ConditionTrue, idle: true},
		},
		"Observed": {
			reason: "An object that only observes fences nobody.", machines: lost,
			vip: vip(func(v *v1alpha1.VIPService) {
				v.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
			}),
			want: want{approved: all, idle: true},
		},
		"OneNode": {
			reason: "Machines of one Kubernetes node do not watch each other.", vip: vip(), machines: []client.Object{machine("a", "k1"), machine("b", "k1"), machine("c", "k1")},
			want: want{approved: all, condition: meta.ReasonNotEnoughWitnesses, status: corev1.ConditionFalse, idle: true},
		},
		"Invisible": {
			reason: "The condition has the grant that machines need to watch each other.", vip: vip(), machines: []client.Object{machine("a", "k1"), machine("b", "k2", "n-a="), machine("c", "k3")},
			want: want{approved: all, condition: meta.ReasonHostsNotVisible, status: corev1.ConditionFalse, idle: true},
		},
		"BothClusters": {
			reason: "The witnesses of two clusters together lose a host.", vip: vip(shared), machines: []client.Object{machine("a", "k1", "n-b=Alive", "n-far=Alive"), machine("b", "k2", "n-a=Lost", "n-far=Alive")},
			theirs: registry.Fencing{Lost: []registry.LostHost{{Node: "n-a", Witnesses: 1}}},
			want:   want{approved: map[string]bool{"n-a": false, "n-b": true, "n-c": true}, fence: "n-a", condition: meta.ReasonHostFenced, status: corev1.ConditionTrue, pause: pollFenced},
		},
		"OneCluster": {
			reason: "A single witness asks the other cluster until it says something.", vip: vip(shared), machines: []client.Object{machine("a", "k1", "n-b=Alive", "n-far=Alive"), machine("b", "k2", "n-a=Lost", "n-far=Alive")},
			want: want{approved: all, condition: meta.ReasonHostLost, status: corev1.ConditionTrue, pause: pollSuspected},
		},
		"FencedElsewhere": {
			reason: "While another cluster has fenced a host, no further host is.", vip: vip(shared), machines: []client.Object{machine("a", "k1", "n-b=Alive", "n-far=Alive"), machine("b", "k2", "n-a=Lost", "n-far=Alive")},
			theirs: registry.Fencing{Lost: []registry.LostHost{{Node: "n-a", Witnesses: 2}}, Fence: &fence.Fence{Node: "n-x", Cluster: "two", Deadline: testTime.Add(time.Minute)}},
			want:   want{approved: all, condition: meta.ReasonHostLost, status: corev1.ConditionTrue, pause: pollSuspected},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := tc.tailnet
			n.services = map[string]tailscale.Service{}
			if n.approved == nil {
				n.approved = map[string]bool{"n-a": true, "n-b": true, "n-c": true}
			}
			for _, cluster := range []string{"one", "two"} {
				f := registry.Fencing{}
				if cluster == "two" {
					f = tc.theirs
				}
				s := recordOf(t, cluster, f)
				n.services[s.Name] = s
			}
			r, kube := newReconciler(t, &n, !tc.standby, append(tc.machines, tc.vip)...)
			res, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(tc.vip)})
			if (err != nil) != tc.err {
				t.Fatalf("\n%s\nReconcile(...): %v", tc.reason, err)
			}
			v := &v1alpha1.VIPService{}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(tc.vip), v); err != nil {
				t.Fatal(err)
			}
			c := v.GetCondition(meta.TypeFencingReady)
			got := want{approved: n.approved, condition: c.Reason, status: c.Status, pause: res.RequeueAfter, idle: n.calls == 0}
			if c.Reason == "" {
				got.status = ""
			}
			if v.Status.AtProvider.Fence != nil {
				got.fence = v.Status.AtProvider.Fence.NodeID
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nReconcile(...): -want, +got:\n%s\n%s", tc.reason, diff, c.Message)
			}
			if tc.want.condition == meta.ReasonHostsNotVisible && !strings.Contains(c.Message, `"grants": [{"src": ["tag:k8s"], "dst": ["tag:k8s"], "ip": ["icmp:*"]}]`) {
				t.Errorf("\n%s\nMessage: %s", tc.reason, c.Message)
			}
		})
	}
}

// TestWatches checks that config Secrets name the hosts to watch, and are read and written only for changes.
func TestWatches(t *testing.T) {
	v := vip()
	objs := []client.Object{v, machine("a", "k1"), machine("b", "k2"), machine("c", "k3")}
	for _, name := range []string{"a", "b", "c"} {
		objs = append(objs, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + meta.ConfigSecretSuffix,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.MachineKind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}},
		}})
	}
	n := &tailnet{services: map[string]tailscale.Service{}, approved: map[string]bool{}}
	r, kube := newReconciler(t, n, true, objs...)
	watched := func() map[string]string {
		out := map[string]string{}
		for _, name := range []string{"a", "b", "c"} {
			s := &corev1.Secret{}
			if err := kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name + meta.ConfigSecretSuffix}, s); err != nil {
				t.Fatal(err)
			}
			out[name] = strings.Join(meta.WatchedHosts(s.GetAnnotations()), " ")
		}
		return out
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(v)}); err != nil {
		t.Fatalf("Reconcile(...): %v", err)
	}
	want := map[string]string{"a": "n-b n-c", "b": "n-a n-c", "c": "n-a n-b"}
	if diff := cmp.Diff(want, watched()); diff != "" {
		t.Errorf("Each machine must watch the other hosts: -want, +got:\n%s", diff)
	}
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
		t.Fatal(err)
	}
	v.Spec.ForProvider.Fencing = false
	if err := kube.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(v)}); err != nil {
		t.Fatalf("Reconcile(...): %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "", "b": "", "c": ""}, watched()); diff != "" {
		t.Errorf("Without fencing, no machine must watch: -want, +got:\n%s", diff)
	}
}

// at returns a condition with another time.
func at(c xpv2.Condition, t time.Time) xpv2.Condition {
	c.LastTransitionTime = metav1.NewTime(t)
	return c
}

// newReconciler returns a reconciler of a replica, and its client.
func newReconciler(t *testing.T, n *tailnet, leads bool, objs ...client.Object) (*reconciler, client.Client) {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&v1alpha1.VIPService{}).Build()
	e := &election{log: logging.NewNopLogger(), begin: make(chan struct{}), elected: make(chan ctrlevent.GenericEvent)}
	e.lease.Store(leads)
	return &reconciler{
		kube: kube,
		connect: func(context.Context, *v1alpha1.VIPService) (connection, error) {
			return connection{api: n, cluster: "one"}, nil
		},
		cluster:  func(context.Context, *v1alpha1.VIPService) (string, error) { return "one", nil },
		election: e, record: event.NewNopRecorder(), clock: func() time.Time { return testTime }, written: cache.NewExpiring(), stated: cache.NewExpiring(),
	}, kube
}

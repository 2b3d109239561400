// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

var key = types.NamespacedName{Namespace: "default", Name: "web-ingress"}

func machineSet(names ...string) *v1alpha1.MachineSet {
	s := &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, UID: "set", Generation: 1,
			Labels: map[string]string{meta.LabelEndpoints: "web", "team": "edge"},
		},
		Spec: v1alpha1.MachineSetSpec{
			ProviderConfigReference: xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "example"},
			Tags:                    []v1alpha1.Tag{"tag:web"},
		},
	}
	for _, n := range names {
		s.Spec.Machines = append(s.Spec.Machines, v1alpha1.MachineSetMember{Name: n, Hostname: "default-" + n})
	}
	return s
}

// A harness is a reconciler on a fake API server. It counts the writes of the status.
type harness struct {
	*reconciler

	clock  *clocktesting.FakePassiveClock
	writes int
}

func newHarness(t *testing.T, objs ...client.Object) *harness {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.ContainsFunc(objs, func(o client.Object) bool { _, ok := o.(*v1alpha1.ClusterProviderConfig); return ok }) {
		objs = append(objs, &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "example"}})
	}
	h := &harness{clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).
		WithStatusSubresource(&v1alpha1.MachineSet{}, &v1alpha1.Machine{}, &appsv1.StatefulSet{}).
		WithIndex(&v1alpha1.Machine{}, indexOwner, owner).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				h.writes++
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	h.reconciler = &reconciler{
		kube: c, live: c, watch: func(context.Context) (bool, error) { return true, nil },
		watchStatic: func(context.Context) (bool, error) { return true, nil },
		grant:       clients.NewConnector(c, nil, nil, nil).Grant, images: proxy.Images{Tailscale: "tailscale:test", Agent: "agent:test"},
		log: logging.NewNopLogger(), record: event.NewNopRecorder(), clock: h.clock.Now, pending: map[types.NamespacedName]pending{},
	}
	return h
}

// run reconciles until no requeue is requested, and advances the clock by each requested delay.
func (h *harness) run(t *testing.T) {
	t.Helper()
	for range 10 {
		res, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatalf("Reconcile(...): %v", err)
		}
		if res.RequeueAfter == 0 {
			return
		}
		h.clock.SetTime(h.clock.Now().Add(res.RequeueAfter))
	}
	t.Fatal("Reconcile(...) never settled")
}

func (h *harness) names(t *testing.T) []string {
	t.Helper()
	l := &v1alpha1.MachineList{}
	if err := h.kube.List(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range l.Items {
		if m.GetDeletionTimestamp() == nil {
			out = append(out, m.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// change changes a Machine's status.
func (h *harness) change(t *testing.T, name string, fn func(*v1alpha1.Machine)) {
	t.Helper()
	m := &v1alpha1.Machine{}
	if err := h.kube.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: name}, m); err != nil {
		t.Fatal(err)
	}
	fn(m)
	writes := h.writes
	if err := h.kube.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	h.writes = writes
}

func ready(m *v1alpha1.Machine) {
	m.Status.AtProvider = v1alpha1.MachineObservation{
		NodeID: "n-" + m.GetName(), Name: m.GetName() + ".tail.ts.net", Hostname: "default-" + m.GetName(),
		Addresses: []string{"100.64.0.1"}, Tags: []string{"tag:web"}, Online: ptr.To(true), Authorized: ptr.To(true),
	}
	m.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess())
}

func (h *harness) status(t *testing.T) v1alpha1.MachineSetStatus {
	t.Helper()
	s := &v1alpha1.MachineSet{}
	if err := h.kube.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	return s.Status
}

func TestScale(t *testing.T) {
	h := newHarness(t, machineSet("web-ingress-0", "web-ingress-1"))
	h.run(t)
	if diff := cmp.Diff([]string{"web-ingress-0", "web-ingress-1"}, h.names(t)); diff != "" {
		t.Fatalf("want the listed Machines: -want, +got:\n%s", diff)
	}
	m := &v1alpha1.Machine{}
	if err := h.kube.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "web-ingress-1"}, m); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{meta.LabelEndpoints: "web", meta.LabelMachineSet: key.Name, meta.LabelBackup: "true"}
	if diff := cmp.Diff(want, m.GetLabels()); diff != "" {
		t.Errorf("want the set's project labels and none of the user's: -want, +got:\n%s", diff)
	}
	unique := names.UniqueHost("default-web-ingress-1", "set", "web-ingress-1")
	if diff := cmp.Diff(v1alpha1.MachineParameters{Hostname: unique, Tags: []v1alpha1.Tag{"tag:web"}}, m.Spec.ForProvider); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}

	s := &v1alpha1.MachineSet{}
	if err := h.kube.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	s.Spec.Machines, s.Spec.AcceptRoutes = s.Spec.Machines[:1], true
	if err := h.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	h.run(t)
	if diff := cmp.Diff([]string{"web-ingress-0"}, h.names(t)); diff != "" {
		t.Errorf("want only the listed Machines: -want, +got:\n%s", diff)
	}
	if err := h.kube.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "web-ingress-0"}, m); err != nil {
		t.Fatal(err)
	}
	if !m.Spec.ForProvider.AcceptRoutes {
		t.Error("want the change of the set in its Machines")
	}
}

// TestHostname shows that an existing machine keeps its hostname in the tailnet, and that nobody
// can give it another one.
func TestHostname(t *testing.T) {
	const old = "default-web-ingress-0"
	set := machineSet("web-ingress-0")
	unique := names.UniqueHost(old, "set", "web-ingress-0")
	for name, tc := range map[string]struct{ reason, existing, want string }{
		"New":   {reason: "A new machine gets a unique name.", want: unique},
		"Kept":  {reason: "A machine keeps its name.", existing: unique, want: unique},
		"Old":   {reason: "A machine from before unique hostnames keeps its name: a rename would give its device the name of another one.", existing: old, want: old},
		"Wrong": {reason: "A name that somebody else wrote is corrected.", existing: "victim", want: unique},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Machine{}
			m.Spec.ForProvider.Hostname = tc.existing
			for range 2 {
				apply(set, set.Spec.Machines[0], m)
				if got := m.Spec.ForProvider.Hostname; got != tc.want {
					t.Errorf("\n%s\nwant %q, got %q", tc.reason, tc.want, got)
				}
			}
		})
	}
	other := machineSet("web-ingress-0")
	other.UID = "other"
	if a, b := Compose(set, set.Spec.Machines[0]), Compose(other, other.Spec.Machines[0]); a.Spec.ForProvider.Hostname == b.Spec.ForProvider.Hostname {
		t.Errorf("sets of two clusters: want two names, got %q", a.Spec.ForProvider.Hostname)
	}
}

// TestSettle shows that changes of many machines within seconds cause one write.
func TestSettle(t *testing.T) {
	names := []string{"web-ingress-0", "web-ingress-1", "web-ingress-2", "web-ingress-3", "web-ingress-4"}
	h := newHarness(t, machineSet(names...))
	h.run(t)
	baseline := h.writes

	reconcileOnce := func() time.Duration {
		res, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil {
			t.Fatalf("Reconcile(...): %v", err)
		}
		h.clock.SetTime(h.clock.Now().Add(500 * time.Millisecond))
		return res.RequeueAfter
	}
	for _, n := range names {
		h.change(t, n, ready)
		reconcileOnce()
		h.change(t, n, func(m *v1alpha1.Machine) { m.Status.Agent = &v1alpha1.MachineAgentStatus{PodIP: "10.0.0.1"} })
		reconcileOnce()
	}
	if h.writes != baseline {
		t.Errorf("want no write while machines come up, got %d", h.writes-baseline)
	}
	h.run(t)
	if got := h.writes - baseline; got != 1 {
		t.Errorf("want one write once all are up, got %d", got)
	}
	if got := h.status(t).ReadyMachines; got != int32(len(names)) {
		t.Errorf("want %d ready machines, got %d", len(names), got)
	}

	// A machine that flaps continuously is reported, too.
	began := h.clock.Now()
	for i := 0; h.writes-baseline == 1; i++ {
		h.change(t, names[0], func(m *v1alpha1.Machine) { m.Status.AtProvider.Addresses = []string{time.Unix(int64(i), 0).String()} })
		reconcileOnce()
		if h.clock.Now().Sub(began) > 2*settleAtMost {
			t.Fatalf("want a write within %s, got none", settleAtMost)
		}
	}
}

// TestForbidden shows that the provider cannot delete Machines without the project's role.
func TestForbidden(t *testing.T) {
	h := newHarness(t, machineSet("web-ingress-0", "web-ingress-1"))
	h.run(t)
	s := &v1alpha1.MachineSet{}
	if err := h.kube.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	s.Spec.Machines = s.Spec.Machines[:1]
	if err := h.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	h.kube = interceptor.NewClient(h.kube.(client.WithWatch), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return kerrors.NewForbidden(schema.GroupResource{Group: v1alpha1.Group, Resource: "machines"}, o.GetName(), nil)
		},
	})
	events := record.NewFakeRecorder(1)
	h.record = event.NewAPIRecorder(events)

	if _, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !kerrors.IsForbidden(err) {
		t.Errorf("Reconcile(...): want an error that is retried, got %v", err)
	}
	select {
	case got := <-events.Events:
		if want := `Warning CannotDeleteMachine cannot delete Machine "web-ingress-1"; let the provider's service account`; !strings.HasPrefix(got, want) {
			t.Errorf("want an event that says what to do, got %q", got)
		}
	default:
		t.Error("want an event, got none")
	}

	h.record = event.NewNopRecorder()
	h.change(t, "web-ingress-0", ready)
	for range 2 {
		if _, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); !kerrors.IsForbidden(err) {
			t.Errorf("Reconcile(...): want an error that is retried, got %v", err)
		}
		h.clock.SetTime(h.clock.Now().Add(settleAtMost))
	}
	st := h.status(t)
	if st.ReadyMachines != 1 {
		t.Errorf("want the status to report the machine that stays, got %d ready", st.ReadyMachines)
	}
	const message = `Cannot delete Machine "web-ingress-1"; let the provider's service account delete machines, as the chart tailscale-gateway does: `
	if len(st.Machines) != 2 || !st.Machines[1].Failed || !strings.HasPrefix(st.Machines[1].Message, message) {
		t.Errorf("want the status to name the fix for the surplus machine, got %v", st.Machines)
	}
	deletable := func() xpv2.Condition {
		m := &v1alpha1.Machine{}
		if err := h.kube.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "web-ingress-1"}, m); err != nil {
			t.Fatal(err)
		}
		for _, c := range m.Status.Conditions {
			if c.Type == meta.TypeDeletable {
				return c
			}
		}
		return xpv2.Condition{}
	}
	if c := deletable(); c.Status != corev1.ConditionFalse || c.Reason != meta.ReasonCannotDeleteMachine || c.Message != st.Machines[1].Message {
		t.Errorf("want the condition on the Machine as well, got %v", c)
	}

	if err := h.kube.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	s.Spec.Machines = machineSet("web-ingress-0", "web-ingress-1").Spec.Machines
	if err := h.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	h.run(t)
	if diff := cmp.Diff(xpv2.Condition{}, deletable()); diff != "" {
		t.Errorf("want no condition on a machine that is listed again: -want, +got:\n%s", diff)
	}
	if h.status(t).Machines[1].Failed {
		t.Error("want no failure of a machine that is listed again")
	}
}

func TestTaken(t *testing.T) {
	foreign := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "web-ingress-0"}}
	h := newHarness(t, machineSet("web-ingress-0", "web-ingress-1"), foreign)
	h.run(t)
	want := v1alpha1.MachineSetStatus{ObservedGeneration: 1, Machines: []v1alpha1.MachineSummary{
		{Name: "web-ingress-0", Failed: true, Message: "Machine web-ingress-0 exists and does not belong to these proxies; delete it, or give these another name"},
		{Name: "web-ingress-1", Message: "Waiting for the pod to log in to the tailnet with the auth key that the provider issues"},
	}}
	if diff := cmp.Diff(want, h.status(t)); diff != "" {
		t.Errorf("want a Machine of somebody else unchanged and reported: -want, +got:\n%s", diff)
	}
}

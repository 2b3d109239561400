// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// node returns a node with an external and an internal address. state is its condition Ready.
func node(name, external, internal string, state corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"edge": "true"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: state}}
	for t, a := range map[corev1.NodeAddressType]string{corev1.NodeExternalIP: external, corev1.NodeInternalIP: internal} {
		if a != "" {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: t, Address: a})
		}
	}
	return n
}

func TestEndpoints(t *testing.T) {
	a := *node("a", "198.51.100.1", "10.0.0.1", corev1.ConditionTrue)
	b := *node("b", "198.51.100.2", "10.0.0.2", corev1.ConditionTrue)
	c := *node("c", "198.51.100.3", "10.0.0.3", corev1.ConditionTrue)
	away := *node("away", "198.51.100.4", "", corev1.ConditionUnknown)
	dual := *node("dual", "2001:db8::1", "", corev1.ConditionTrue)
	leaving := *node("leaving", "198.51.100.5", "", corev1.ConditionTrue)
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	cases := map[string]struct {
		reason   string
		nodes    []corev1.Node
		kind     v1alpha1.NodeAddressType
		existing []string
		families []corev1.IPFamily
		want     []string
	}{
		"None":     {reason: "Without nodes there are no addresses."},
		"Default":  {reason: "Peers are outside unless said otherwise.", nodes: []corev1.Node{a}, want: []string{"198.51.100.1:31000"}},
		"Internal": {reason: "Peers may reach the nodes' network.", nodes: []corev1.Node{a}, kind: v1alpha1.NodeInternalIP, want: []string{"10.0.0.1:31000"}},
		"IPv6":     {reason: "An IPv6 address is an address.", nodes: []corev1.Node{dual}, want: []string{"[2001:db8::1]:31000"}},
		"OnlyIPv6": {reason: "A Service answers at addresses of its families only.", nodes: []corev1.Node{a, b, dual}, families: []corev1.IPFamily{corev1.IPv6Protocol}, want: []string{"[2001:db8::1]:31000"}},
		"OnlyIPv4": {reason: "So does one of IPv4.", nodes: []corev1.Node{dual, a}, families: []corev1.IPFamily{corev1.IPv4Protocol}, want: []string{"198.51.100.1:31000"}},
		"Both":     {reason: "One of both answers at all.", nodes: []corev1.Node{dual, a}, families: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, want: []string{"198.51.100.1:31000", "[2001:db8::1]:31000"}},
		"Order":    {reason: "Nodes come in any order.", nodes: []corev1.Node{c, b, a}, want: []string{"198.51.100.1:31000", "198.51.100.2:31000"}},
		"Kept":     {reason: "A new node replaces none that serves.", nodes: []corev1.Node{a, b, c}, existing: []string{"198.51.100.2:31000", "198.51.100.3:31000"}, want: []string{"198.51.100.2:31000", "198.51.100.3:31000"}},
		"Moved":    {reason: "Another port is another address.", nodes: []corev1.Node{a}, existing: []string{"198.51.100.1:30999"}, want: []string{"198.51.100.1:31000"}},
		"Away":     {reason: "A ready node is better than one that is away.", nodes: []corev1.Node{a, b, away}, existing: []string{"198.51.100.4:31000"}, want: []string{"198.51.100.1:31000", "198.51.100.2:31000"}},
		"AllAway":  {reason: "One that is away is better than none: it may be back.", nodes: []corev1.Node{away}, existing: []string{"198.51.100.4:31000"}, want: []string{"198.51.100.4:31000"}},
		"Leaving":  {reason: "A node that is deleted does not come back.", nodes: []corev1.Node{leaving}},
		"Bad": {
			reason: "A node may report anything.",
			nodes:  []corev1.Node{*node("x", "host.example.com", "", corev1.ConditionTrue), *node("y", "0.0.0.0", "", corev1.ConditionTrue), *node("z", "127.0.0.1", "", corev1.ConditionTrue)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, ok := nodePortOf(&corev1.Service{Spec: corev1.ServiceSpec{IPFamilies: tc.families, Ports: []corev1.ServicePort{{NodePort: 31000}}}})
			if !ok {
				t.Fatal("nodePortOf(...): want a port")
			}
			if diff := cmp.Diff(tc.want, endpoints(tc.nodes, tc.kind, at, tc.existing)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			slices.Reverse(tc.nodes)
			if diff := cmp.Diff(tc.want, endpoints(tc.nodes, tc.kind, at, tc.existing)); diff != "" {
				t.Errorf("%s The order of nodes matters: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// services returns the Services of the set, and gives them node ports as an API server does.
func (h *harness) services(t *testing.T) []string {
	t.Helper()
	all := &corev1.ServiceList{}
	if err := h.kube.List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range all.Items {
		s := &all.Items[i]
		out = append(out, s.GetName()+"/"+s.Spec.Selector[appsv1.StatefulSetPodNameLabel])
		if s.Spec.Ports[0].NodePort == 0 {
			s.Spec.Ports[0].NodePort = int32(31000 + i)
			s.Spec.ClusterIP = "10.96.0.7"
			if err := h.kube.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

func (h *harness) staticOf(t *testing.T, machine string) []string {
	t.Helper()
	m := &v1alpha1.Machine{}
	if err := h.kube.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: machine}, m); err != nil {
		t.Fatal(err)
	}
	return m.Spec.ForProvider.StaticEndpoints
}

func granted() *v1alpha1.ClusterProviderConfig {
	return &v1alpha1.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "example"},
		Spec: v1alpha1.ProviderConfigSpec{AllowedNamespaces: &v1alpha1.AllowedNamespaces{
			From:   v1alpha1.NamespacesFromGrants,
			Grants: []v1alpha1.NamespaceGrant{{Names: []string{key.Namespace}, StaticEndpoints: ptr.To(true)}},
		}},
	}
}

func announcing(p *v1alpha1.MachineSetPods) { p.StaticEndpoints = &v1alpha1.StaticEndpoints{} }

// TestStatic goes through the life of static endpoints: made, with a node that goes, scaled in, and
// turned off.
func TestStatic(t *testing.T) {
	first, two := node("one", "198.51.100.1", "", corev1.ConditionTrue), node("two", "198.51.100.2", "", corev1.ConditionTrue)
	h := newHarness(t, granted(), first, two, withPods(machineSet("web-ingress-0", "web-ingress-1"), announcing))
	h.run(t)
	if diff := cmp.Diff([]string{"web-ingress-0-direct/web-ingress-0", "web-ingress-1-direct/web-ingress-1"}, h.services(t)); diff != "" {
		t.Fatalf("each pod has a separate Service: -want, +got:\n%s", diff)
	}
	h.run(t)
	if diff := cmp.Diff([]string{"198.51.100.1:31000", "198.51.100.2:31000"}, h.staticOf(t, "web-ingress-0")); diff != "" {
		t.Errorf("a machine announces its port at the nodes: -want, +got:\n%s", diff)
	}
	if got := h.staticOf(t, "web-ingress-1"); !slices.Contains(got, "198.51.100.1:31001") {
		t.Errorf("another machine has another port: %v", got)
	}
	h.play(t, 2)
	if err := h.kube.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	h.run(t)
	if diff := cmp.Diff([]string{"198.51.100.2:31000"}, h.staticOf(t, "web-ingress-0")); diff != "" {
		t.Errorf("a node that is gone is not announced: -want, +got:\n%s", diff)
	}
	h.update(t, func(s *v1alpha1.MachineSet) { s.Spec.Machines, s.Spec.Pods.Replicas = s.Spec.Machines[:1], 1 })
	h.run(t)
	if diff := cmp.Diff([]string{"web-ingress-0-direct/web-ingress-0"}, h.services(t)); diff != "" {
		t.Errorf("the Service goes with its machine: -want, +got:\n%s", diff)
	}
	h.update(t, func(s *v1alpha1.MachineSet) { s.Spec.Pods.StaticEndpoints = nil })
	h.run(t)
	if got, remaining := h.staticOf(t, "web-ingress-0"), h.services(t); len(got)+len(remaining) > 0 {
		t.Errorf("nothing is left of static endpoints: %v, %v", got, remaining)
	}
}

// TestStaticLeavesNothing turns static endpoints off that never had an address: their Services go,
// and not before the spec says so.
func TestStaticLeavesNothing(t *testing.T) {
	h := newHarness(t, granted(), withPods(machineSet("web-ingress-0"), announcing))
	reconciles := func() {
		// Without an address the set has a problem.
		_, _ = h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	}
	reconciles()
	if got := h.services(t); len(got) != 1 {
		t.Fatalf("want a Service, got %v", got)
	}
	reconciles()
	h.update(t, func(s *v1alpha1.MachineSet) { s.Spec.Pods = nil })
	reconciles()
	if got := h.services(t); len(got) != 1 {
		t.Errorf("a spec of an older function says nothing of static endpoints: left %v", got)
	}
	h.update(t, func(s *v1alpha1.MachineSet) { withPods(s) })
	reconciles()
	if got := h.services(t); len(got) != 0 {
		t.Errorf("a set without static endpoints has no Services, got %v", got)
	}
}

// TestStaticRefused has what static endpoints need missing.
func TestStaticRefused(t *testing.T) {
	cases := map[string]struct {
		reason  string
		config  *v1alpha1.ClusterProviderConfig
		denied  bool
		node    *corev1.Node
		problem string
		pods    bool
	}{
		"NotGranted": {
			reason: "A port on nodes must be granted, also to who may use the whole credential.",
			config: &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "example"}}, problem: "spec.pods.staticEndpoints",
		},
		"Denied":    {reason: "The provider has the permissions only if it is installed so. Proxies run without.", config: granted(), denied: true, problem: "provider.staticEndpoints=true", pods: true},
		"NoAddress": {reason: "Nodes of a private cluster have no external address. Proxies run without.", config: granted(), node: node("a", "", "10.0.0.1", corev1.ConditionTrue), problem: "addressType", pods: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.config, withPods(machineSet("web-ingress-0"), announcing)}
			if tc.node != nil {
				objects = append(objects, tc.node)
			}
			h := newHarness(t, objects...)
			if tc.denied {
				h.watchStatic = func(context.Context) (bool, error) { return false, nil }
			}
			reconciles := func() string {
				_, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
				if err == nil {
					return ""
				}
				return err.Error()
			}
			reconciles()
			if !tc.denied {
				h.services(t)
			}
			if got := reconciles(); !strings.Contains(got, tc.problem) {
				t.Errorf("%s got problem %q, want %q", tc.reason, got, tc.problem)
			}
			err := h.kube.Get(t.Context(), key, &appsv1.StatefulSet{})
			if (err == nil) != tc.pods {
				t.Errorf("%s the pods exist: %v", tc.reason, err == nil)
			}
			if got := h.staticOf(t, "web-ingress-0"); len(got) > 0 {
				t.Errorf("%s the machine announces %v", tc.reason, got)
			}
		})
	}
}

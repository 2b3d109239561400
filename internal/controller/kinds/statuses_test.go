// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// TestCleanStatuses verifies that no condition of any type has characters or lengths that a
// server, a user of the tailnet or an agent chose, and that cleaning changes no time.
func TestCleanStatuses(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	first, second := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	dirty := func(kind xpv2.ConditionType, message string, at metav1.Time) xpv2.Condition {
		return xpv2.Condition{Type: kind, Status: corev1.ConditionFalse, Reason: "No", Message: message, LastTransitionTime: at}
	}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	config := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "corp"}}
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	kube := CleanStatuses(fake.NewClientBuilder().WithScheme(s).WithObjects(machine, config, set, pod).WithStatusSubresource(machine, config, set, pod).Build())
	want := []xpv2.Condition{dirty("Synced", "a b", first), dirty("Healthy", strings.Repeat("x", 4096)+"...", first), dirty("Ready", "fine", first)}
	for name, tc := range map[string]struct {
		reason string
		o      client.Object
		set    func(at metav1.Time)
		get    func() []xpv2.Condition
		patch  bool
	}{
		"Machine": {reason: "All conditions of a managed resource are cleaned.", o: machine, set: func(at metav1.Time) { machine.Status.Conditions = conditionsAt(dirty, at) }, get: func() []xpv2.Condition { return machine.Status.Conditions }},
		"Config":  {reason: "So are those of a kind with a separate controller.", o: config, set: func(at metav1.Time) { config.Status.Conditions = conditionsAt(dirty, at) }, get: func() []xpv2.Condition { return config.Status.Conditions }},
		"Patch":   {reason: "A patch is cleaned as well.", o: machine, patch: true, set: func(at metav1.Time) { machine.Status.Conditions = conditionsAt(dirty, at) }, get: func() []xpv2.Condition { return machine.Status.Conditions }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, at := range []metav1.Time{first, second} {
				var original client.Object
				if c, ok := tc.o.DeepCopyObject().(client.Object); ok {
					original = c
				}
				tc.set(at)
				write := func() error { return kube.Status().Update(t.Context(), tc.o) }
				if tc.patch {
					write = func() error { return kube.Status().Patch(t.Context(), tc.o, client.MergeFrom(original)) }
				}
				if err := write(); err != nil {
					t.Fatal(err)
				}
				if err := kube.Get(t.Context(), client.ObjectKeyFromObject(tc.o), tc.o); err != nil {
					t.Fatal(err)
				}
				want[2].LastTransitionTime = at
				if diff := cmp.Diff(want, tc.get()); diff != "" {
					t.Errorf("%s\nconditions: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
	network := &v1alpha1.NetworkProblem{Reason: "NoTunDevice", Message: "a\x1bb"}
	set.Status.Machines = []v1alpha1.MachineSummary{{Name: "web-0", Network: network}}
	if err := kube.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if got := set.Status.Machines[0].Network.Message; got != "a b" || network.Message != "a\x1bb" {
		t.Errorf("a MachineSet repeats what an agent reports, cleaned: got %q, and the agent's %q changed", got, network.Message)
	}
	pod.Status.Phase = corev1.PodRunning
	if err := kube.Status().Update(t.Context(), pod); err != nil {
		t.Errorf("an object with other conditions: %v", err)
	}
}

// conditionsAt returns two conditions that are not clean, and one that is.
func conditionsAt(c func(xpv2.ConditionType, string, metav1.Time) xpv2.Condition, at metav1.Time) []xpv2.Condition {
	return []xpv2.Condition{c("Synced", "a\x1bb", at), c("Healthy", strings.Repeat("x", 1<<20), at), c("Ready", "fine", at)}
}

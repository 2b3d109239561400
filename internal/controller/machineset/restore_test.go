// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// TestRestore shows which existing Machines a set takes over: those of a backup of the set, with
// their device and hostname.
func TestRestore(t *testing.T) {
	const name = "web-ingress-0"
	hostname := names.UniqueHost("default-"+name, "UID of the set in the backup", name)
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.Machine)
		want   bool
	}{
		"Backup": {reason: "A Machine of a backup has no owner.", want: true},
		"Owned": {
			reason: "A Machine with an owner is the owner's.",
			change: func(m *v1alpha1.Machine) {
				m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a", Controller: ptr.To(true)}}
			},
		},
		"OtherSet": {
			reason: "A Machine of another set is not this one's.",
			change: func(m *v1alpha1.Machine) { m.Labels[meta.LabelMachineSet] = "other" },
		},
		"OtherTailnet": {
			reason: "A device cannot move to another tailnet.",
			change: func(m *v1alpha1.Machine) { m.Spec.ProviderConfigReference.Name = "other" },
		},
		"Handmade": {
			reason: "A Machine that a user created is the user's.",
			change: func(m *v1alpha1.Machine) { m.Labels = nil },
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			set := machineSet(name)
			m := Compose(set, set.Spec.Machines[0])
			m.SetAnnotations(map[string]string{meta.AnnotationNodeID: "n1"})
			m.SetFinalizers(nil)
			m.Spec.ForProvider.Hostname = hostname
			if tc.change != nil {
				tc.change(m)
			}
			h := newHarness(t, set, m)
			h.run(t)
			got := &v1alpha1.Machine{}
			if err := h.kube.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: name}, got); err != nil {
				t.Fatal(err)
			}
			if owned := metav1.IsControlledBy(got, set); owned != tc.want {
				t.Errorf("\n%s\nwant %t, got %t", tc.reason, tc.want, owned)
			}
			if meta.NodeIDOf(got) != "n1" || got.Spec.ForProvider.Hostname != hostname {
				t.Errorf("\n%s\nwant the device and its hostname, got %q, %q", tc.reason, meta.NodeIDOf(got), got.Spec.ForProvider.Hostname)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// TestGrant changes a set whose pods already run.
func TestGrant(t *testing.T) {
	grants := func(g v1alpha1.NamespaceGrant) *v1alpha1.AllowedNamespaces {
		g.Names = []string{key.Namespace}
		return &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromGrants, Grants: []v1alpha1.NamespaceGrant{g}}
	}
	const other = "registry.example.com/app:v1"
	image := func(p *v1alpha1.MachineSetPods) { p.Image = other }
	secret := func(p *v1alpha1.MachineSetPods) {
		p.Env = []v1alpha1.EnvVar{{Name: "A", ValueFrom: &v1alpha1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}}}}
	}
	cases := map[string]struct {
		reason  string
		allowed *v1alpha1.AllowedNamespaces
		change  func(*v1alpha1.MachineSetPods)
		problem string
	}{
		"Default": {
			reason: "The provider's own image is always allowed, at any tag.",
			change: func(p *v1alpha1.MachineSetPods) { p.Image = "tailscale:other" },
		},
		"Official": {
			reason: "Tailscale's images are allowed unless a grant restricts them.",
			change: func(p *v1alpha1.MachineSetPods) { p.Image = "ghcr.io/tailscale/tailscale:v1" },
		},
		"Image":        {reason: "Other images are refused, because they may run anything.", change: image, problem: "spec.pods.image"},
		"GrantedImage": {reason: "A grant may allow another image.", allowed: grants(v1alpha1.NamespaceGrant{Images: []v1alpha1.ImageRepository{"registry.example.com/*"}}), change: image},
		"Kernel":       {reason: "Any networking is allowed by default.", change: func(p *v1alpha1.MachineSetPods) { p.Networking = v1alpha1.NetworkingKernel }},
		"NoKernel": {
			reason:  "A grant may restrict networking.",
			allowed: grants(v1alpha1.NamespaceGrant{Networking: []v1alpha1.Networking{v1alpha1.NetworkingUserspace}}),
			change:  func(p *v1alpha1.MachineSetPods) { p.Networking = v1alpha1.NetworkingKernel },
			problem: "spec.pods.networking",
		},
		"Privileged": {
			reason:  "A privileged container is refused unless a grant allows it.",
			change:  func(p *v1alpha1.MachineSetPods) { p.Kernel = &v1alpha1.KernelSettings{Privileged: ptr.To(true)} },
			problem: "spec.pods.kernel.privileged",
		},
		"GrantedPrivileged": {
			reason:  "A grant may allow a privileged container.",
			allowed: grants(v1alpha1.NamespaceGrant{PrivilegedContainers: ptr.To(true)}),
			change: func(p *v1alpha1.MachineSetPods) {
				p.Networking, p.Kernel = v1alpha1.NetworkingKernel, &v1alpha1.KernelSettings{Privileged: ptr.To(true)}
			},
		},
		"Secrets":        {reason: "Variables from Secrets are refused unless a grant allows them.", change: secret, problem: "spec.pods.env[0].valueFrom.secretKeyRef"},
		"NoSecrets":      {reason: "An entry that does not name them allows none.", allowed: grants(v1alpha1.NamespaceGrant{}), change: secret, problem: "spec.pods.env[0].valueFrom.secretKeyRef"},
		"GrantedSecrets": {reason: "A grant may allow variables from Secrets.", allowed: grants(v1alpha1.NamespaceGrant{EnvFromSecrets: ptr.To(true)}), change: secret},
		"NotAllowed": {
			reason:  "The pods of a namespace that may no longer use the config stay unchanged.",
			allowed: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromList, Names: []string{"other"}},
			change:  func(p *v1alpha1.MachineSetPods) { p.PriorityClassName = "high" },
			problem: "may not be used in namespace",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "example"}}
			h := newHarness(t, pc, withPods(machineSet("web-ingress-0")))
			h.run(t)
			h.play(t, 1)
			h.run(t)
			version := h.statefulSet(t).GetResourceVersion()

			if err := h.kube.Get(t.Context(), client.ObjectKeyFromObject(pc), pc); err != nil {
				t.Fatal(err)
			}
			pc.Spec.AllowedNamespaces = tc.allowed
			if err := h.kube.Update(t.Context(), pc); err != nil {
				t.Fatal(err)
			}
			h.update(t, func(s *v1alpha1.MachineSet) { withPods(s, tc.change) })
			// A problem is returned as an error, so that the set is reconciled again.
			_, err := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if got := err != nil; got != (tc.problem != "") {
				t.Fatalf("\n%s\nReconcile(...): %v", tc.reason, err)
			}
			got := ""
			if s := h.status(t).StatefulSet; s != nil {
				got = s.Message
			}
			if tc.problem == "" && got != "" || !strings.Contains(got, tc.problem) {
				t.Errorf("\n%s\nwant a message with %q, got %q", tc.reason, tc.problem, got)
			}
			if changed := h.statefulSet(t).GetResourceVersion() != version; changed != (tc.problem == "") {
				t.Errorf("\n%s\nchanged the StatefulSet: %t", tc.reason, changed)
			}
		})
	}
}

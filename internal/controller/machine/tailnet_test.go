// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
)

// joined returns a machine that is in its tailnet.
func joined(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.settle()
	w.api.use("k1", "n1", testTime)
	w.write(map[string]string{"device_id": "n1"})
	w.settle()
	if w.ready().Status != corev1.ConditionTrue {
		t.Fatalf("want the machine to be Ready, got %v", w.ready())
	}
	return w
}

// TestJoinedTailnet reads the tailnet of a Machine that the provider has not recorded yet. Package
// clients compares it with that of the provider config.
func TestJoinedTailnet(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(w *world)
		want   string
	}{
		"Joined":  {reason: "The Machine has the tailnet of its device.", change: func(*world) {}, want: "tail1234.ts.net"},
		"Removed": {reason: "Without it nothing is known.", change: func(w *world) { delete(w.mg.Annotations, annotationTailnet) }},
		"Earlier": {
			reason: "The config Secret has that of a Machine of an earlier version.",
			change: func(w *world) {
				w.unrecord()
				w.forge(map[string]string{hintKeyID: "k1", hintTailnet: "old.ts.net"})
			},
			want: "old.ts.net",
		},
		"Forged": {
			reason: "It does not count for a Machine with a record.",
			change: func(w *world) {
				delete(w.mg.Annotations, annotationTailnet)
				w.forge(map[string]string{hintKeyID: "k1", hintTailnet: "old.ts.net"})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := joined(t)
			tc.change(w)
			got, err := joinedTailnet(t.Context(), kinds.Env{Kube: w.kube}, w.mg)
			if err != nil || got != tc.want {
				t.Errorf("\n%s\njoinedTailnet(...): want %q, got %q, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

// TestTailnetRenamed changes the DNS name of the tailnet, as an admin does.
func TestTailnetRenamed(t *testing.T) {
	w := joined(t)
	d := w.api.devices["n1"]
	d.Name = "default-edge-ingress-0.renamed.ts.net"
	w.api.devices["n1"] = d
	w.settle()
	if got := w.mg.GetAnnotations()[annotationTailnet]; w.ready().Status != corev1.ConditionTrue || got != "renamed.ts.net" {
		t.Errorf("want the machine to be Ready in the tailnet's new name, got %q, %v", got, w.ready())
	}
	deleted := metav1.NewTime(w.at)
	w.mg.DeletionTimestamp = &deleted
	w.settle()
	w.empty()
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// TestKeptFile checks that a configuration that could not be written is written later.
func TestKeptFile(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		dir    string
		key    string
		cm     func(t *testing.T, p *pod) *corev1.ConfigMap
		used   func(p *pod) bool
	}{
		"Egress": {
			reason: "The targets must be written once there is space for them.",
			dir:    "egress",
			key:    egress.ConfigMapKey,
			cm: func(t *testing.T, p *pod) *corev1.ConfigMap {
				t.Helper()
				p.egress = "set-egress"
				return configMap(t, target(freePort(t), "100.64.0.9"))
			},
			used: func(p *pod) bool { return len(p.ports()) == 1 },
		},
		"DNS": {
			reason: "The zone must be written once there is space for it.",
			dir:    "dns",
			key:    zone.ConfigMapKey,
			cm: func(t *testing.T, p *pod) *corev1.ConfigMap {
				t.Helper()
				p.dns, p.dnsPort = "set-dns", freeDNSPort(t)
				return zoneConfigMap(t, "100.100.0.1")
			},
			used: func(p *pod) bool { return p.resolve("udp", "127.0.0.1") == "100.100.0.1" },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newEgressPod(t)
			p.egress = ""
			cm := tc.cm(t, p)
			// A directory in place of the link to the content fails each write.
			obstacle := filepath.Join(p.dir, tc.dir, "..data")
			if err := os.MkdirAll(obstacle, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := p.kube.Create(t.Context(), cm); err != nil {
				t.Fatal(err)
			}
			p.start()
			eventually(t, "A configuration must be used before it is written.", true, func() bool { return tc.used(p) })
			if err := os.Remove(obstacle); err != nil {
				t.Fatal(err)
			}
			eventually(t, tc.reason, cm.Data[tc.key], func() string {
				b, err := os.ReadFile(filepath.Join(p.dir, tc.dir, tc.key))
				if err != nil {
					return err.Error()
				}
				return string(b)
			})
		})
	}
}

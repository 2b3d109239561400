//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

// TestDialects checks that routes answer, and follow a setting, with other naming and merging
// settings of Envoy Gateway than the default ones.
func TestDialects(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		options standalone.Options

		// listener is Envoy's name of the TCP listener.
		listener string
	}{
		"Merged": {
			reason:  "One Envoy serves all Gateways of a class, so a message has the routes and revisions of several Gateways",
			options: standalone.Options{Merge: true}, listener: "default/gw/tcp",
		},
		"NameSchemeV2": {
			reason:  "Names of listeners and route configurations do not contain the Gateway's name",
			options: standalone.Options{Flags: []string{"XDSNameSchemeV2"}}, listener: "tcp-8900",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnvironmentOf(t, tc.options)
			for _, f := range []string{"backends.yaml", "routes.yaml"} {
				w.apply(t, f)
			}
			if tc.options.Merge {
				w.apply(t, "merged.yaml")
				if err := w.Answers(within(t), "http://127.0.0.1:8889/", "second.example.com"); err != nil {
					t.Error(err)
				}
				w.answersTCP(t, "127.0.0.1:8905", "192.0.2.10:9000")
			}
			w.answers(t, "services.example.com", "192.0.2.10:8000")
			w.answers(t, "endpoints.example.com", "192.0.2.20:10007")
			w.answersGRPC(t, "grpc.example.com", "192.0.2.10:8001")
			w.answersTCP(t, "127.0.0.1:8900", "192.0.2.10:9000")
			w.answersUDP(t, "127.0.0.1:8901", "192.0.2.10:9001")
			w.answersTLS(t, "example.com", "192.0.2.10:9444")
			// Envoy Gateway watches only one of the two.
			w.reshapes(t, "web", "tailscale/services/default/web/80/http", "7s")
			w.reshapes(t, "tcp", "tailscale/services/default/tcp/9000/tcp", "8s")
			listeners, err := w.Admin(t.Context(), "/listeners")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(listeners), tc.listener+"::") {
				t.Errorf("%s\nEnvoy has no listener %s:\n%s", tc.reason, tc.listener, listeners)
			}
		})
	}
}

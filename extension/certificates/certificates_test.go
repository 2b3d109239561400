// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// TestSource checks which Envoys get endpoints from the authority in their bootstrap.
func TestSource(t *testing.T) {
	cases := map[string]struct {
		reason       string
		mode         xds.Mode
		bootstrapped bool
		want         bool
	}{
		"GoogleGRPC":      {reason: "The source suits any Envoy, also one with the authority.", mode: xds.ModeGoogleGRPC, bootstrapped: true},
		"XDSTP":           {reason: "In this mode all Envoys have the authority.", mode: xds.ModeXDSTP, want: true},
		"AutoWith":        {reason: "The Envoys have the authority.", mode: xds.ModeAuto, bootstrapped: true, want: true},
		"AutoWithout":     {reason: "The Envoys may lack the authority.", mode: xds.ModeAuto},
		"GoogleGRPCPlain": {reason: "The source needs nothing in the bootstrap.", mode: xds.ModeGoogleGRPC},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Certificates{target: "127.0.0.1:5006", mode: tc.mode}
			c.setEnvoyTLS(xds.TLS{})
			if got := c.Source(tc.bootstrapped).EDS("list").GetEdsConfig() == nil; got != tc.want {
				t.Errorf("\n%s\nSource(%t): from the authority: want %t, got %t", tc.reason, tc.bootstrapped, tc.want, got)
			}
		})
	}
}

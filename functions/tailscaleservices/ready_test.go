// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"path/filepath"
	"testing"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose/composetest"
)

// TestReady evaluates responses like Crossplane: a client that waits for Ready may connect.
func TestReady(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   string
		want   bool
	}{
		"Hosted":           {reason: "A machine is approved and advertises.", file: "serving", want: true},
		"OneOfTwo":         {reason: "One machine is enough.", file: "one-host", want: true},
		"Routed":           {reason: "Control sends clients to a machine.", file: "routed", want: true},
		"RoutedSoon":       {reason: "A machine that is accepted has no clients before control has moved the addresses.", file: "routed-waiting"},
		"NotRouted":        {reason: "No client has a route to a service without a primary host.", file: "not-routed"},
		"RoutedUnknown":    {reason: "An unknown state changes nothing.", file: "routed-unknown", want: true},
		"Address":          {reason: "An address alone does not answer.", file: "address"},
		"NoHealthyBackend": {reason: "No machine offers the service while no backend answers.", file: "no-healthy-backend"},
		"ApprovalPending":  {reason: "Clients are not sent to a machine that is not approved.", file: "approval-pending"},
		"NotConfigured":    {reason: "Clients are not sent to a machine that does not serve every port.", file: "not-configured"},
		"OtherClusters":    {reason: "This cluster does not host the service, another one does.", file: "shared-egress-only", want: true},
		"NoOtherCluster":   {reason: "Neither this cluster nor another one hosts the service yet.", file: "shared-egress-only-unhosted"},
		"RoutesAlone":      {reason: "No cluster hosts a service that is only a backend of routes.", file: "egress-only", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// The status has the name after the previous run has written it.
			rsp := composetest.Settle(t, &Function{log: logging.NewNopLogger()}, objects(t, tc.file)...)
			if got := ready(rsp); got != tc.want {
				t.Errorf("\n%s\nready: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// ready reports whether Crossplane treats the composite as ready (crossplane v2.4
// internal/controller/apiextensions/composite, composition_functions.go).
func ready(rsp *fnv1.RunFunctionResponse) bool {
	if r := rsp.GetDesired().GetComposite().GetReady(); r != fnv1.Ready_READY_UNSPECIFIED {
		return r == fnv1.Ready_READY_TRUE
	}
	for _, r := range rsp.GetDesired().GetResources() {
		if r.GetReady() != fnv1.Ready_READY_TRUE {
			return false
		}
	}
	return true
}

// objects returns the objects of a case of testdata/in.
func objects(t *testing.T, name string) []map[string]any {
	t.Helper()
	return composetest.ReadCase(t, filepath.Join("testdata", "in", name+".yaml")).Objects
}

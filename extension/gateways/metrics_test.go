// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestMetrics(t *testing.T) {
	routes := func(states ...tailnetv1alpha1.GeneratedRouteState) []tailnetv1alpha1.ReportedGeneratedRoute {
		var out []tailnetv1alpha1.ReportedGeneratedRoute
		for _, s := range states {
			out = append(out, tailnetv1alpha1.ReportedGeneratedRoute{State: s})
		}
		return out
	}
	m := newMetrics()
	expect := func(reason, accepted, conflict string) {
		t.Helper()
		want := `
# HELP tailscale_gateway_extension_generated_routes Routes to generate for TailscaleGateways, by state. Only the replica that writes them reports them.
# TYPE tailscale_gateway_extension_generated_routes gauge
tailscale_gateway_extension_generated_routes{state="Accepted"} ` + accepted + `
tailscale_gateway_extension_generated_routes{state="Conflict"} ` + conflict + `
tailscale_gateway_extension_generated_routes{state="Pending"} 0
tailscale_gateway_extension_generated_routes{state="Refused"} 0
`
		if err := testutil.CollectAndCompare(m, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	a, b := types.NamespacedName{Namespace: "shop", Name: "a"}, types.NamespacedName{Namespace: "shop", Name: "b"}
	m.set(a, routes(tailnetv1alpha1.GeneratedRouteAccepted, tailnetv1alpha1.GeneratedRouteConflict))
	m.set(b, routes(tailnetv1alpha1.GeneratedRouteAccepted))
	expect("the routes of all TailscaleGateways are added", "2", "1")
	m.set(a, nil)
	expect("a TailscaleGateway without routes adds none", "1", "0")
	m.reset()
	expect("after a reset there are no routes", "0", "0")
}

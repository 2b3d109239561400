// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestPreferZone checks when a target prefers the endpoints of Envoy's zone.
func TestPreferZone(t *testing.T) {
	near := func(service string) string {
		return strings.Replace(service, "spec: {", "spec: {trafficDistribution: PreferClose, ", 1)
	}
	auto := strings.Replace(serviceAlt, "{name: alt}", `{name: alt, annotations: {service.kubernetes.io/topology-mode: Auto}}`, 1)
	both := services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}, {name: alt, port: 8080}]}`)
	cases := map[string]struct {
		reason  string
		objects []string
		want    uint32
	}{
		"No":       {reason: "A Service without a traffic distribution should have all endpoints used.", objects: []string{servicesWeb, serviceApp}},
		"Yes":      {reason: "The traffic distribution of the backend's Service should apply.", objects: []string{servicesWeb, near(serviceApp)}, want: 1},
		"Both":     {reason: "The larger threshold of several backends should apply.", objects: []string{both, near(serviceApp), auto}, want: 3},
		"One":      {reason: "One of several backends should not decide for others.", objects: []string{both, near(serviceApp), serviceAlt}},
		"Missing":  {reason: "A Service that does not exist should count as one without it.", objects: []string{both, near(serviceApp)}},
		"External": {reason: "A host outside of the cluster is in no zone.", objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}, {name: far, kind: External, host: 198.51.100.7, port: 80}]}`), near(serviceApp)}},
		"Unused":   {reason: "A backend without traffic should not count.", objects: []string{services(`{vipService: {ports: ["tcp:80"]}, loadBalancing: {strategy: weighted}, backends: [{name: app, port: 8080, weight: 1}, {name: alt, port: 8080, weight: 0}]}`), near(serviceApp), serviceAlt}, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}
			target := snapshotOf(t, append(tc.objects, routeToWeb)...).Target(k)
			if target == nil {
				t.Fatal("there is no target")
			}
			if target.Shape.PreferZone != tc.want {
				t.Errorf("%s\nPreferZone: want %d, got %d", tc.reason, tc.want, target.Shape.PreferZone)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
)

// TestSettingsZone checks that the preference of Envoy's zone of a route's Services does not become one
// of other endpoints, and that the one of a policy does.
func TestSettingsZone(t *testing.T) {
	percent := nearFrom(1)
	percent.GetZoneAwareLbConfig().ForceLocalZone = nil
	cases := map[string]struct {
		reason   string
		near     *commonv3.LocalityLbConfig
		services bool
		want     bool
	}{
		"TrafficDistribution": {reason: "A Service with a trafficDistribution is near in its own cluster only.", near: nearFrom(1), services: true},
		"TopologyMode":        {reason: "So is one with the annotation topology-mode.", near: nearFrom(3), services: true},
		"Policy":              {reason: "A policy's preference should stay.", near: percent, services: true, want: true},
		"NoService":           {reason: "Without Services it is the policy's.", near: nearFrom(1), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, err := packAny(&randomv3.Random{LocalityLbConfig: tc.near})
			if err != nil {
				t.Fatal(err)
			}
			c := read(t, template)
			c.LoadBalancingPolicy.Policies[0] = &clusterv3.LoadBalancingPolicy_Policy{
				TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: "envoy.load_balancing_policies.random", TypedConfig: a},
			}
			settings, err := NewSettings(c, nil, tc.services)
			if err != nil {
				t.Fatal(err)
			}
			if got := prefersLocal(settings.Template.GetLoadBalancingPolicy()); got != tc.want {
				t.Errorf("\n%s\nNewSettings(...): prefers the zone: %t, want %t", tc.reason, got, tc.want)
			}
			if settings.Default() {
				t.Errorf("\n%s\nNewSettings(...): the load balancer is not the default", tc.reason)
			}
		})
	}
}

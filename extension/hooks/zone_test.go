// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestPreferZone checks that clusters of targets that prefer Envoy's zone have the settings of Envoy
// Gateway's, and endpoint lists by zone.
func TestPreferZone(t *testing.T) {
	near := func(c *clusterv3.Cluster) (proto.Message, uint64) {
		for _, m := range []interface {
			proto.Message
			GetLocalityLbConfig() *commonv3.LocalityLbConfig
		}{&leastrequestv3.LeastRequest{}, &roundrobinv3.RoundRobin{}, &randomv3.Random{}} {
			a := c.GetLoadBalancingPolicy().GetPolicies()[0].GetTypedExtensionConfig().GetTypedConfig()
			if a.MessageIs(m) && a.UnmarshalTo(m) == nil {
				z := m.GetLocalityLbConfig().GetZoneAwareLbConfig()
				if uint64(z.GetForceLocalZone().GetMinSize().GetValue()) != z.GetMinClusterSize().GetValue() {
					t.Errorf("the zone needs %v, and the cluster %v", z.GetForceLocalZone(), z.GetMinClusterSize())
				}
				return m, z.GetMinClusterSize().GetValue()
			}
		}
		return nil, 0
	}
	chosen := func(c *clusterv3.Cluster) {
		c.LoadBalancingPolicy.Policies[0].TypedExtensionConfig.TypedConfig = toAny(&randomv3.Random{LocalityLbConfig: &commonv3.LocalityLbConfig{
			LocalityConfigSpecifier: &commonv3.LocalityLbConfig_LocalityWeightedLbConfig_{LocalityWeightedLbConfig: &commonv3.LocalityLbConfig_LocalityWeightedLbConfig{}},
		}})
	}
	zones := map[ir.RouteKey]map[string]ir.Tuning{routeKey(ir.KindHTTPRoute, "app"): {"": {Zones: []ir.ZoneWeight{{Zone: "a", Weight: 1}}}}}
	cases := map[string]struct {
		reason    string
		threshold uint32
		balancer  ir.LoadBalancer
		change    func(*clusterv3.Cluster)
		tunings   map[ir.RouteKey]map[string]ir.Tuning
		want      uint64
		policy    proto.Message
		list      string
	}{
		"No":         {reason: "Without it endpoints of all zones should have their weights.", policy: &leastrequestv3.LeastRequest{}, list: webHTTP},
		"Yes":        {reason: "Requests should stay in the zone.", threshold: 1, want: 1, policy: &leastrequestv3.LeastRequest{}, list: webHTTP + "+local"},
		"RoundRobin": {reason: "The load balancer of the object should stay.", threshold: 3, balancer: ir.RoundRobin, want: 3, policy: &roundrobinv3.RoundRobin{}, list: webHTTP + "+local"},
		"Policy":     {reason: "The load balancer of a policy should stay.", threshold: 1, change: chosen, want: 1, policy: &randomv3.Random{}, list: webHTTP + "+local"},
		"Zones":      {reason: "The weights of zones in a policy should take precedence.", threshold: 1, tunings: zones, policy: &leastrequestv3.LeastRequest{}, list: webHTTP + "+zone=a:1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ts := targets("web")
			for _, target := range ts {
				target.Shape.PreferZone, target.Shape.LoadBalancer = tc.threshold, tc.balancer
			}
			s := ir.NewSnapshot(ir.Contents{Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1)))}, Targets: ts, Tunings: tc.tunings})
			c := egCluster(rule0)
			if tc.change != nil {
				tc.change(c)
			}
			out, _ := Translate(s, testSource, Resources{Clusters: []*clusterv3.Cluster{c}, Routes: egRoutes(egRoute(match0, prefix("/"), to(rule0)))})
			m, got := near(out.Clusters[0])
			if got != tc.want || m.ProtoReflect().Descriptor() != tc.policy.ProtoReflect().Descriptor() {
				t.Errorf("%s\nwant %T from %d, got %T from %d", tc.reason, tc.policy, tc.want, m, got)
			}
			if list := out.Clusters[0].GetEdsClusterConfig().GetServiceName(); list != tc.list {
				t.Errorf("%s\nwant the list %s, got %s", tc.reason, tc.list, list)
			}
			if err := validate(out); err != nil {
				t.Errorf("%s\nEnvoy Gateway would refuse it: %v", tc.reason, err)
			}
		})
	}
}

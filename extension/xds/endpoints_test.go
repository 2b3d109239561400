// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func endpoints(addresses ...string) []ir.Endpoint {
	out := make([]ir.Endpoint, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, ir.Endpoint{Address: a, Port: 80})
	}
	return out
}

func TestAssignment(t *testing.T) {
	type args struct {
		localities      []ir.Locality
		healthThreshold uint32
		tuning          ir.Tuning
	}
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"Empty": {
			reason: "No localities should be an empty list, which Envoy accepts as an answer.",
			want:   `{"clusterName": "a"}`,
		},
		"Full": {
			reason: "The list should have all fields of an endpoint.",
			args: args{
				localities: []ir.Locality{
					{Name: "east", Zone: "a", Weight: 7, Endpoints: []ir.Endpoint{
						{Address: "10.0.0.2", Port: 80, Health: ir.Draining},
						{Address: "10.0.0.1", Port: 81, Hostname: "a.example", Health: ir.Healthy, Weight: 5},
						{Address: "10.0.0.1", Port: 80, Health: ir.Unhealthy},
					}},
				},
				healthThreshold: 70,
			},
			want: `{"clusterName": "a", "policy": {"overprovisioningFactor": 142}, "endpoints": [
				{"locality": {"region": "east", "zone": "a"}, "loadBalancingWeight": 7, "lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}, "healthStatus": "UNHEALTHY"},
					{"endpoint": {"hostname": "a.example", "address": {"socketAddress": {"address": "10.0.0.1", "portValue": 81}}}, "healthStatus": "HEALTHY", "loadBalancingWeight": 5},
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}, "healthStatus": "DRAINING"}
				]}
			]}`,
		},
		"Unparsable": {
			reason: "Envoy refuses a response, with the lists of all other tenants, for one address that it cannot parse. Others should be in canonical form.",
			args: args{
				localities: []ir.Locality{{Name: "east", Endpoints: []ir.Endpoint{
					{Address: "010.0.0.6", Port: 80}, {Address: "127.000.000.001", Port: 80}, {Address: "db.example", Port: 80}, {Address: "", Port: 80},
					{Address: "fe80::1%eth0", Port: 80}, {Address: "10.0.0.1", Port: 0}, {Address: "10.0.0.1", Port: -1}, {Address: "10.0.0.1", Port: 65536},
					{Address: "FD7A:0:0::1", Port: 80},
				}}},
			},
			want: `{"clusterName": "a", "endpoints": [
				{"locality": {"region": "east"}, "loadBalancingWeight": 1, "lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "fd7a::1", "portValue": 80}}}}
				]}
			]}`,
		},
		"PackedPriorities": {
			reason: "Priorities should have no gaps. A locality without endpoints keeps its place.",
			args: args{localities: []ir.Locality{
				{Name: "none", Priority: 0, Weight: 1},
				{Name: "last", Priority: 4, Weight: 1, Endpoints: endpoints("10.0.0.2")},
				{Name: "far", Priority: 2, Weight: 1, Endpoints: endpoints("10.0.0.1")},
			}},
			want: `{"clusterName": "a", "endpoints": [
				{"locality": {"region": "none"}, "loadBalancingWeight": 1},
				{"locality": {"region": "far"}, "loadBalancingWeight": 1, "priority": 1, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}}]},
				{"locality": {"region": "last"}, "loadBalancingWeight": 1, "priority": 2, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}}]}
			]}`,
		},
		"SameLocality": {
			reason: "A locality and an address should occur once. The default weight is the number of endpoints.",
			args: args{localities: []ir.Locality{
				{Name: "east", Endpoints: endpoints("10.0.0.2", "10.0.0.1")},
				{Name: "east", Endpoints: endpoints("10.0.0.1")},
			}},
			want: `{"clusterName": "a", "endpoints": [
				{"locality": {"region": "east"}, "loadBalancingWeight": 3, "lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}},
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}}
				]}
			]}`,
		},
		"HealthPort": {
			reason: "Envoy should check backends at the policy's port, and egress proxies at their own.",
			args: args{tuning: ir.Tuning{HealthPort: 9090}, localities: []ir.Locality{
				{Name: "app", Weight: 1, Endpoints: endpoints("10.0.0.1")},
				{Name: "far", Priority: 1, Weight: 1, Proxied: true, Endpoints: endpoints("10.0.0.2")},
			}},
			want: `{"clusterName": "a", "endpoints": [
				{"locality": {"region": "app"}, "loadBalancingWeight": 1, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}, "healthCheckConfig": {"portValue": 9090}}}]},
				{"locality": {"region": "far"}, "loadBalancingWeight": 1, "priority": 1, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}}]}
			]}`,
		},
		"WeightedZones": {
			reason: "Zones should have a policy's weights, or 1, and backends share the weight of their zone.",
			args: args{tuning: ir.Tuning{Zones: []ir.ZoneWeight{{Zone: "a", Weight: 3}, {Zone: "c", Weight: 0}}}, localities: []ir.Locality{
				{Name: "one", Zone: "a", Weight: 2, Endpoints: endpoints("10.0.0.1")},
				{Name: "two", Zone: "a", Weight: 1, Endpoints: endpoints("10.0.0.2")},
				{Name: "two", Zone: "b", Weight: 9, Endpoints: endpoints("10.0.0.3")},
				{Name: "two", Zone: "c", Weight: 9, Endpoints: endpoints("10.0.0.4")},
			}},
			want: `{"clusterName": "a", "endpoints": [
				{"locality": {"region": "one", "zone": "a"}, "loadBalancingWeight": 2000, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}}]},
				{"locality": {"region": "two", "zone": "a"}, "loadBalancingWeight": 1000, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}}]},
				{"locality": {"region": "two", "zone": "b"}, "loadBalancingWeight": 1000, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.3", "portValue": 80}}}}]},
				{"locality": {"region": "two", "zone": "c"}, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.4", "portValue": 80}}}}]}
			]}`,
		},
		"HeavyZones": {
			reason: "Envoy adds the weights of zones in 32 bits.",
			args: args{tuning: ir.Tuning{Zones: []ir.ZoneWeight{{Zone: "a", Weight: 1<<32 - 1}, {Zone: "b", Weight: 1<<32 - 1}}}, localities: []ir.Locality{
				{Name: "one", Zone: "a", Weight: 1}, {Name: "one", Zone: "b", Weight: 1},
			}},
			want: `{"clusterName": "a", "endpoints": [
				{"locality": {"region": "one", "zone": "a"}, "loadBalancingWeight": 1073741824},
				{"locality": {"region": "one", "zone": "b"}, "loadBalancingWeight": 1073741824}
			]}`,
		},
		"PreferLocal": {
			reason: "Localities should be zones only, for each priority, and endpoints have the weights of their backends.",
			args: args{tuning: ir.Tuning{PreferLocal: true}, localities: []ir.Locality{
				{Name: "one", Zone: "a", Weight: 3, Endpoints: endpoints("10.0.0.1")},
				{Name: "one", Zone: "b", Weight: 3, Endpoints: endpoints("10.0.0.3")},
				{Name: "two", Zone: "a", Weight: 1, Endpoints: endpoints("10.0.0.2", "10.0.0.4")},
				{Name: "two", Zone: "a", Weight: 1, Priority: 1, Endpoints: endpoints("10.0.0.5")},
			}},
			want: `{"clusterName": "a", "endpoints": [
				{"locality": {"zone": "a"}, "loadBalancingWeight": 4, "lbEndpoints": [
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": 80}}}, "loadBalancingWeight": 3000},
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.2", "portValue": 80}}}, "loadBalancingWeight": 500},
					{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.4", "portValue": 80}}}, "loadBalancingWeight": 500}
				]},
				{"locality": {"zone": "b"}, "loadBalancingWeight": 3, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.3", "portValue": 80}}}}]},
				{"locality": {"zone": "a"}, "loadBalancingWeight": 1, "priority": 1, "lbEndpoints": [{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.5", "portValue": 80}}}}]}
			]}`,
		},
		"AllMustBeHealthy": {
			reason: "A threshold of 100 should use the next priority with the first failure: Envoy's factor has a minimum.",
			args:   args{healthThreshold: 100},
			want:   `{"clusterName": "a", "policy": {"overprovisioningFactor": 100}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := &endpointv3.ClusterLoadAssignment{}
			if err := protojson.Unmarshal([]byte(tc.want), want); err != nil {
				t.Fatal(err)
			}
			got := Assignment("a", tc.args.localities, tc.args.healthThreshold, tc.args.tuning)
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("\n%s\nAssignment(...): -want, +got:\n%s", tc.reason, diff)
			}
			if err := got.ValidateAll(); err != nil {
				t.Errorf("\n%s\nAssignment(...): Envoy would refuse it: %v", tc.reason, err)
			}
		})
	}
}

func TestJoin(t *testing.T) {
	type want struct {
		localities []ir.Locality
		threshold  uint32
	}
	single := []ir.Locality{{Name: "local", Priority: 1, Weight: 9, Endpoints: endpoints("10.0.0.1")}}
	cases := map[string]struct {
		reason string
		shares []ir.EndpointShare
		want   want
	}{
		"None": {
			reason: "No shares should give no localities.",
		},
		"One": {
			reason: "A single share should stay as it is.",
			shares: []ir.EndpointShare{{Weight: 3, HealthThreshold: 70, Localities: single}},
			want:   want{localities: single, threshold: 70},
		},
		"ExactWeights": {
			reason: "Each share should have its part at the first priority, whatever its own is, divided by the weights of zones.",
			shares: []ir.EndpointShare{
				{Weight: 70, HealthThreshold: 60, Localities: single},
				{Weight: 30, HealthThreshold: 80, Localities: []ir.Locality{
					{Name: "a", Weight: 1, Endpoints: endpoints("10.0.0.2")},
					{Name: "b", Weight: 2, Endpoints: endpoints("10.0.0.3")},
					{Name: "c", Priority: 1, Weight: 2, Endpoints: endpoints("10.0.0.4")},
				}},
			},
			want: want{
				localities: []ir.Locality{
					{Name: "0/local", Weight: 70_000, Endpoints: endpoints("10.0.0.1")},
					{Name: "1/a", Weight: 10_000, Endpoints: endpoints("10.0.0.2")},
					{Name: "1/b", Weight: 20_000, Endpoints: endpoints("10.0.0.3")},
					{Name: "1/c", Priority: 1, Weight: 30_000, Endpoints: endpoints("10.0.0.4")},
				},
				threshold: 80,
			},
		},
		"Rounding": {
			reason: "Zones should get the rounding difference, so that the share keeps its weight.",
			shares: []ir.EndpointShare{
				{Weight: 1, Localities: single},
				{Weight: 1, Localities: []ir.Locality{
					{Name: "a", Weight: 1, Endpoints: endpoints("10.0.0.2")},
					{Name: "b", Weight: 1, Endpoints: endpoints("10.0.0.3")},
					{Name: "c", Weight: 1, Endpoints: endpoints("10.0.0.4")},
				}},
			},
			want: want{localities: []ir.Locality{
				{Name: "0/local", Weight: 1000, Endpoints: endpoints("10.0.0.1")},
				{Name: "1/a", Weight: 334, Endpoints: endpoints("10.0.0.2")},
				{Name: "1/b", Weight: 333, Endpoints: endpoints("10.0.0.3")},
				{Name: "1/c", Weight: 333, Endpoints: endpoints("10.0.0.4")},
			}},
		},
		"GreatWeights": {
			reason: "Gateway API's greatest weights should stay within Envoy's limit for a sum.",
			shares: []ir.EndpointShare{
				{Weight: 1_000_000_000, Localities: single},
				{Weight: 1_000_000_000, Localities: single},
			},
			want: want{localities: []ir.Locality{
				{Name: "0/local", Weight: 1_000_000_000, Endpoints: endpoints("10.0.0.1")},
				{Name: "1/local", Weight: 1_000_000_000, Endpoints: endpoints("10.0.0.1")},
			}},
		},
		"Draining": {
			reason: "A share whose near endpoints are draining should have its part at the next priority.",
			shares: []ir.EndpointShare{
				{Weight: 1, Localities: single},
				{Weight: 1, Localities: []ir.Locality{
					{Name: "near", Weight: 1, Endpoints: []ir.Endpoint{{Address: "10.0.0.2", Port: 80, Health: ir.Draining}}},
					{Name: "far", Priority: 1, Weight: 1, Endpoints: endpoints("10.0.0.3")},
				}},
			},
			want: want{localities: []ir.Locality{
				{Name: "0/local", Weight: 1000, Endpoints: endpoints("10.0.0.1")},
				{Name: "1/near", Weight: 1, Endpoints: []ir.Endpoint{{Address: "10.0.0.2", Port: 80, Health: ir.Draining}}},
				{Name: "1/far", Weight: 1000, Endpoints: endpoints("10.0.0.3")},
			}},
		},
		"NothingThere": {
			reason: "A share without endpoints should leave its part to the others.",
			shares: []ir.EndpointShare{{Weight: 9}, {Weight: 1, Localities: single}},
			want: want{localities: []ir.Locality{
				{Name: "1/local", Weight: 1000, Endpoints: endpoints("10.0.0.1")},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			localities, threshold := Join(tc.shares)
			got := want{localities: localities, threshold: threshold}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nJoin(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

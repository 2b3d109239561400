// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A sharingRoute is a route to the target web.
type sharingRoute struct {
	name string
	age  int64

	// connect timeout in seconds, as a policy sets it.
	connect int

	// policy that Envoy Gateway has applied.
	policy string
}

// timeout returns a change that sets a policy's timeout.
func timeout(seconds int) func(*clusterv3.Cluster) {
	return func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(time.Duration(seconds) * time.Second) }
}

// applied returns the metadata of a route with an applied BackendTrafficPolicy.
func applied(policy string) *corev3.Metadata {
	metadata, err := structpb.NewStruct(map[string]any{"policies": []any{map[string]any{"kind": "BackendTrafficPolicy", "namespace": "default", "name": policy}}})
	if err != nil {
		panic(err)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy-gateway": metadata}}
}

// clustersOf returns the clusters of routes, by the routes' names, and the number of clusters. The
// policy gateway is for the whole Gateway.
func clustersOf(t *testing.T, shape ir.Shape, sharers ...sharingRoute) (map[string]string, int) {
	t.Helper()
	c := ir.Contents{Targets: targets("web"), GatewayPolicies: map[ir.RouteKey][]types.NamespacedName{}}
	for _, target := range c.Targets {
		target.Shape = shape
	}
	var clusters []*clusterv3.Cluster
	var routes []*routev3.Route
	for _, sharing := range sharers {
		own := "httproute/default/" + sharing.name + "/rule/0"
		c.Routes = append(c.Routes, aged(sharing.age, route(ir.KindHTTPRoute, sharing.name, rule(ours(0, "web", 1)))))
		c.GatewayPolicies[routeKey(ir.KindHTTPRoute, sharing.name)] = []types.NamespacedName{nn("default", "gateway")}
		r := egRoute(own+"/match/0/"+sharing.name, prefix("/"), to(own))
		if sharing.policy != "" {
			r.Metadata = applied(sharing.policy)
		}
		clusters, routes = append(clusters, egCluster(own, timeout(sharing.connect))), append(routes, r)
	}
	s := ir.NewSnapshot(c)
	out, _ := Translate(s, testSource, Resources{Clusters: clusters, Routes: egRoutes(routes...)})
	if err := validate(out); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i, r := range out.Routes[0].GetVirtualHosts()[0].GetRoutes() {
		got[sharers[i].name] = r.GetRoute().GetCluster()
	}
	second, _ := Translate(s, testSource, clone(out))
	if diff := cmp.Diff(marshal(t, out), marshal(t, second)); diff != "" {
		t.Fatalf("Translate(Translate(...)): -want, +got:\n%s", diff)
	}
	return got, len(out.Clusters)
}

// TestNewRouteMovesNone adds routes at random, each younger than those before. Existing routes must
// keep their cluster and their settings.
func TestNewRouteMovesNone(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		var existing []sharingRoute
		previous := map[string]string{}
		for age := range int64(12) {
			existing = append(existing, sharingRoute{name: fmt.Sprintf("app-%d", r.Uint32()), age: age, connect: 1 + r.IntN(3)})
			r.Shuffle(len(existing), func(i, j int) { existing[i], existing[j] = existing[j], existing[i] })
			current, _ := clustersOf(t, ir.Shape{}, existing...)
			for name, c := range previous {
				if current[name] != c {
					t.Fatalf("seed %d: a new route moves %s from %s to %s", seed, name, c, current[name])
				}
			}
			previous = current
		}
		timeouts := map[string]int{}
		for _, sharer := range existing {
			if s, ok := timeouts[previous[sharer.name]]; ok && s != sharer.connect {
				t.Fatalf("seed %d: %s has other settings", seed, previous[sharer.name])
			}
			timeouts[previous[sharer.name]] = sharer.connect
		}
		if settings := slices.Compact(slices.Sorted(maps.Values(timeouts))); len(settings) != len(timeouts) {
			t.Fatalf("seed %d: routes with the same settings have different clusters: %v", seed, timeouts)
		}
	}
}

func TestCommonCluster(t *testing.T) {
	plain, slow := sharingRoute{name: "b", age: 2, connect: 1}, sharingRoute{name: "a", age: 1, connect: 9}
	withPolicy := func(sharer sharingRoute, policy string) sharingRoute {
		sharer.policy = policy
		return sharer
	}
	cases := map[string]struct {
		reason string
		routes []sharingRoute

		// common are the routes that use the target's common cluster.
		common []string
	}{
		"Oldest":   {reason: "The oldest route should provide the cluster's settings.", routes: []sharingRoute{plain, slow}, common: []string{"a"}},
		"Route":    {reason: "A route with a separate policy should not, although the snapshot lacks the policy.", routes: []sharingRoute{plain, withPolicy(slow, "own")}, common: []string{"b"}},
		"Gateway":  {reason: "A route with the Gateway's policy should.", routes: []sharingRoute{withPolicy(plain, "own"), withPolicy(slow, "gateway")}, common: []string{"a"}},
		"Everyone": {reason: "If all routes have such policies, the oldest should.", routes: []sharingRoute{withPolicy(plain, "one"), withPolicy(slow, "two")}, common: []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _ := clustersOf(t, ir.Shape{}, tc.routes...)
			var common []string
			for _, routeName := range slices.Sorted(maps.Keys(got)) {
				if got[routeName] == webHTTP {
					common = append(common, routeName)
				}
			}
			if diff := cmp.Diff(tc.common, common); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSettingsReported checks that a translation reports rules whose clusters have other settings.
func TestSettingsReported(t *testing.T) {
	c := ir.Contents{Targets: targets("web"), GatewayPolicies: map[ir.RouteKey][]types.NamespacedName{}}
	var clusters []*clusterv3.Cluster
	var routes []*routev3.Route
	for i, name := range []string{"old", "slow"} {
		own := "httproute/default/" + name + "/rule/0"
		c.Routes = append(c.Routes, aged(int64(i+1), route(ir.KindHTTPRoute, name, rule(ours(0, "web", 1)))))
		clusters, routes = append(clusters, egCluster(own, timeout(1+8*i))), append(routes, egRoute(own+"/match/0/"+name, prefix("/"), to(own)))
	}
	s := ir.NewSnapshot(c)
	out, first := Translate(s, testSource, Resources{Clusters: clusters, Routes: egRoutes(routes...)})
	_, second := Translate(s, testSource, clone(out))
	for n, got := range map[string][]Settings{"first": first.Settings, "again": second.Settings} {
		if len(got) != 1 || !isVariant(got[0].Cluster, got[0].Target) || got[0].Route.Name != "slow" {
			t.Fatalf("%s: %+v, want those of route slow", n, got)
		}
		if diff := cmp.Diff([]string{"connectTimeout"}, got[0].Differs); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", n, diff)
		}
	}
}

// TestSettingsChange changes settings, first of all routes and then of the target.
func TestSettingsChange(t *testing.T) {
	sharers := func(connect, others int) []sharingRoute {
		return []sharingRoute{{name: "a", age: 1, connect: connect}, {name: "b", age: 2, connect: connect}, {name: "c", age: 3, connect: others}}
	}
	previous, n := clustersOf(t, ir.Shape{}, sharers(1, 5)...)
	if n != 2 {
		t.Errorf("Two settings should have two clusters, got %d", n)
	}
	current, _ := clustersOf(t, ir.Shape{}, sharers(7, 5)...)
	if diff := cmp.Diff(previous, current); diff != "" {
		t.Errorf("Settings of the Gateway should change in place: -want, +got:\n%s", diff)
	}
	current, _ = clustersOf(t, ir.Shape{HTTP2: true, HealthCheck: &ir.HealthCheck{Path: "/"}}, sharers(1, 5)...)
	if diff := cmp.Diff(previous, current); diff != "" {
		t.Errorf("Settings of the target should change in place: -want, +got:\n%s", diff)
	}
	var many []sharingRoute
	for i := range 500 {
		many = append(many, sharingRoute{name: fmt.Sprintf("r%d", i), age: int64(i), connect: 4})
	}
	if _, n = clustersOf(t, ir.Shape{}, many...); n != 1 {
		t.Errorf("Routes with one policy should have one cluster, got %d", n)
	}
	many[0].connect = 1
	if _, n = clustersOf(t, ir.Shape{}, many...); n != 2 {
		t.Errorf("The same should hold beside an older route, got %d", n)
	}
}

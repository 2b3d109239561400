// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// TestKept checks that a split keeps everything else: filters of a sibling's reference, the code
// for a missing cluster, and the rest of the route.
func TestKept(t *testing.T) {
	entry := &routev3.WeightedCluster_ClusterWeight{
		Name:                rule0 + "/backend/0",
		RequestHeadersToAdd: []*corev3.HeaderValueOption{{Header: &corev3.HeaderValue{Key: "x-from", Value: "filter"}}},
	}
	a := to(rule0+"/backend/0=3", rule0+"/backend/1=0")
	entry.Weight = a.GetWeightedClusters().GetClusters()[0].GetWeight()
	a.GetWeightedClusters().Clusters[0] = entry
	a.ClusterNotFoundResponseCode = routev3.RouteAction_NOT_FOUND
	a.Timeout = durationpb.New(7)
	r := egRoute(match0, prefix("/"), a)
	r.StatPrefix = "kept"
	want := proto.CloneOf(r)
	if err := xds.Retry(want.GetRoute(), false); err != nil {
		t.Fatal(err)
	}
	w := want.GetRoute().GetWeightedClusters()
	w.Clusters = append(w.Clusters[:1], to("x=1", webHTTP+"=1").GetWeightedClusters().GetClusters()[1])

	resources := Resources{Clusters: egClusters(rule0+"/backend/0", rule0+"/backend/1"), Routes: egRoutes(r)}
	out, _ := Translate(ir.NewSnapshot(ir.Contents{
		Routes:  []*ir.Route{route(ir.KindHTTPRoute, "app", rule(svc(0, 3), ours(1, "web", 1)))},
		Targets: targets("web"),
	}), testSource, resources)
	if got := out.Routes[0].GetVirtualHosts()[0].GetRoutes()[0]; !proto.Equal(want, got) {
		t.Errorf("Translate(...): want %v, got %v", want, got)
	}
}

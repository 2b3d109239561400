// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// ofGateway adds the metadata that Envoy Gateway puts on virtual hosts.
func ofGateway(t *testing.T, rs []*routev3.RouteConfiguration) []*routev3.RouteConfiguration {
	t.Helper()
	m, err := structpb.NewStruct(map[string]any{"resources": []any{map[string]any{"kind": "Gateway", "namespace": "infra", "name": "gw"}}})
	if err != nil {
		t.Fatal(err)
	}
	rs[0].VirtualHosts[0].Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy-gateway": m}}
	return rs
}

func TestPostTranslateModify(t *testing.T) {
	secrets := []*tlsv3.Secret{{Name: "kept"}}
	cases := map[string]struct {
		reason   string
		contents ir.Contents
		req      *pb.PostTranslateModifyRequest
		want     Translation
		clusters []string
	}{
		"Ours": {
			reason:   "The recorder should get the result and the Gateway of a translation; secrets should be returned.",
			contents: ir.Contents{Revision: 7, Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1)))}, Targets: targets("web")},
			req: &pb.PostTranslateModifyRequest{
				Clusters: egClusters(rule0), Secrets: secrets,
				Routes: ofGateway(t, egRoutes(egRoute(match0, prefix("/"), to(rule0)))),
			},
			want:     Translation{Gateway: "infra/gw", Revision: 7, Summary: Summary{Shared: 1, Removed: 1, Rules: 1}},
			clusters: []string{webHTTP},
		},
		"Listener": {
			reason:   "Without virtual hosts the listener's name should identify the Gateway.",
			req:      &pb.PostTranslateModifyRequest{Clusters: egClusters("a"), Secrets: secrets, Listeners: []*listenerv3.Listener{egTCP("x", "y")}},
			want:     Translation{Gateway: "default/gw"},
			clusters: []string{"a"},
		},
		"Empty": {
			reason: "An empty message should be returned.",
			req:    &pb.PostTranslateModifyRequest{Secrets: secrets},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got Translation
			s := NewServer(fixed{ir.NewSnapshot(tc.contents)}, testSources, WithRecorder(RecorderFn(func(t Translation) { got = t })))
			rsp, err := s.PostTranslateModify(context.Background(), tc.req)
			if err != nil {
				t.Fatalf("\n%s\nPostTranslateModify(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Translation{}, "Start", "Duration"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nPostTranslateModify(...): recorded: -want, +got:\n%s", tc.reason, diff)
			}
			var names []string
			for _, c := range rsp.GetClusters() {
				names = append(names, c.GetName())
			}
			if diff := cmp.Diff(tc.clusters, names); diff != "" {
				t.Errorf("\n%s\nPostTranslateModify(...): clusters: -want, +got:\n%s", tc.reason, diff)
			}
			if len(rsp.GetSecrets()) != 1 || !proto.Equal(secrets[0], rsp.GetSecrets()[0]) {
				t.Errorf("\n%s\nPostTranslateModify(...): secrets: want %v, got %v", tc.reason, secrets, rsp.GetSecrets())
			}
		})
	}
}

// TestEcho checks that other hooks return their object.
func TestEcho(t *testing.T) {
	ctx := context.Background()
	s := NewServer(fixed{ir.NewSnapshot(ir.Contents{})}, testSources)
	route := egRoute("r", prefix("/"), to("c"))
	host := egRoutes(route)[0].GetVirtualHosts()[0]
	listener := egTCP("x", "y")
	cluster := egCluster("c")
	list := &endpointv3.ClusterLoadAssignment{ClusterName: "c"}

	r, err := s.PostRouteModify(ctx, &pb.PostRouteModifyRequest{Route: route})
	same[*routev3.Route](t, route, r.GetRoute(), err)
	v, err := s.PostVirtualHostModify(ctx, &pb.PostVirtualHostModifyRequest{VirtualHost: host})
	same[*routev3.VirtualHost](t, host, v.GetVirtualHost(), err)
	l, err := s.PostHTTPListenerModify(ctx, &pb.PostHTTPListenerModifyRequest{Listener: listener})
	same[*listenerv3.Listener](t, listener, l.GetListener(), err)
	c, err := s.PostClusterModify(ctx, &pb.PostClusterModifyRequest{Cluster: cluster})
	same[*clusterv3.Cluster](t, cluster, c.GetCluster(), err)
	e, err := s.PostEndpointsModify(ctx, &pb.PostEndpointsModifyRequest{LoadAssignment: list})
	same[*endpointv3.ClusterLoadAssignment](t, list, e.GetLoadAssignment(), err)
}

func same[T proto.Message](t *testing.T, want, got T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(want, got) {
		t.Errorf("want %v, got %v", want, got)
	}
}

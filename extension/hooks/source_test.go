// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// TestSourceOfGateway checks that a Gateway's clusters get endpoints from the authority in its
// Envoys' bootstrap if these have it, and from the extension's address otherwise.
func TestSourceOfGateway(t *testing.T) {
	cases := map[string]struct {
		reason       string
		bootstrapped types.NamespacedName
		want         bool
	}{
		"Bootstrapped": {reason: "The Envoys have the authority.", bootstrapped: nn("infra", "gw"), want: true},
		"Other":        {reason: "Envoys of another Gateway have the authority.", bootstrapped: nn("other", "gw")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewServer(fixed{ir.NewSnapshot(ir.Contents{
				Routes:     []*ir.Route{route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1)))},
				Targets:    targets("web"),
				Bootstraps: map[types.NamespacedName]ir.Bootstrap{tc.bootstrapped: {Authority: true}},
			})}, func(bootstrapped bool) xds.Source {
				if bootstrapped {
					return xds.XDSTP()
				}
				return testSource
			})
			rsp, err := s.PostTranslateModify(context.Background(), &pb.PostTranslateModifyRequest{
				Clusters: egClusters(rule0),
				Routes:   ofGateway(t, egRoutes(egRoute(match0, prefix("/"), to(rule0)))),
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(rsp.GetClusters()) != 1 {
				t.Fatalf("want one cluster, got %v", rsp.GetClusters())
			}
			if got := rsp.GetClusters()[0].GetEdsClusterConfig().GetEdsConfig() == nil; got != tc.want {
				t.Errorf("\n%s\nPostTranslateModify(...): from the bootstrap's authority: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

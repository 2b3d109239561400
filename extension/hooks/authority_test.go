// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// TestAuthoritySecrets translates many ports of one object with large authorities, and removes the
// policy that names these.
func TestAuthoritySecrets(t *testing.T) {
	const ports = 32
	shape := ir.Shape{HealthThreshold: 70, TLS: &ir.UpstreamTLS{ServerName: "web.example.com", CA: strings.Repeat("x", limits.Authorities)}}
	contents := func(s ir.Shape) *ir.Snapshot {
		var rules []ir.Rule
		c := ir.Contents{}
		for i := range int32(ports) {
			b := ours(0, "web", 1)
			b.Port = 80 + i
			rules = append(rules, rule(b))
			c.Targets = append(c.Targets, &ir.Target{Key: b.Target(ir.KindHTTPRoute), Shape: s})
		}
		c.Routes = []*ir.Route{route(ir.KindHTTPRoute, "app", rules...)}
		return ir.NewSnapshot(c)
	}
	resources := Resources{Routes: egRoutes()}
	for i := range ports {
		name := fmt.Sprintf("httproute/default/app/rule/%d", i)
		resources.Clusters = append(resources.Clusters, egCluster(name))
		resources.Routes[0].VirtualHosts[0].Routes = append(resources.Routes[0].VirtualHosts[0].Routes, egRoute(name+"/match/0/www_example_com", prefix("/"), to(name)))
	}
	out, _ := Translate(contents(shape), testSource, clone(resources))
	if err := validate(out); err != nil {
		t.Error(err)
	}
	size := 0
	for _, c := range out.Clusters {
		size += proto.Size(c)
	}
	if size > ports*limits.Authorities/8 {
		t.Errorf("the clusters have %d bytes: they contain the authorities", size)
	}
	if len(out.Secrets) != 1 || out.Secrets[0].GetValidationContext().GetTrustedCa().GetInlineString() != shape.TLS.CA {
		t.Fatalf("want one secret with the authorities, got %d", len(out.Secrets))
	}
	for _, c := range out.Clusters {
		if !slices.Contains(xds.SecretsOf(c), out.Secrets[0].GetName()) {
			t.Errorf("cluster %s does not use the secret", c.GetName())
		}
	}
	if second, _ := Translate(contents(shape), testSource, clone(out)); !slices.Equal(marshal(t, second), marshal(t, out)) || len(second.Secrets) != 1 {
		t.Error("a second translation changes the result")
	}
	plain := shape
	plain.TLS = &ir.UpstreamTLS{ServerName: "web.example.com"}
	if out, _ = Translate(contents(plain), testSource, clone(resources)); len(out.Secrets) != 0 {
		t.Errorf("%d secrets without a policy that needs one", len(out.Secrets))
	}
}

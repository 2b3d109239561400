//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"strings"
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestInputsFailOver runs Envoy Gateway's own translators over the inputs of its tests, where each Service
// of each Gateway fails over. All that Envoy Gateway made stays, with the policies of all kinds: each
// cluster byte for byte, and each route except for the names of clusters. Envoy accepts what is added.
func TestInputsFailOver(t *testing.T) {
	translator := program(t, "envoy-gateway-inputs", "TEST_ASSET_ENVOY_GATEWAY_INPUTS")
	envoy := program(t, "envoy", "TEST_ASSET_ENVOY")
	j := newValidator(t, envoy)
	changed, all := 0, loadInputs(t)
	for _, batch := range inTwelves(all) {
		var cases []*replaced
		for i, doc := range batch {
			if *oneInput == doc.name || *oneInput == "" && (*allInputs || i%sampled == 0 || strings.HasPrefix(doc.name, "backendtlspolicy")) {
				cases = append(cases, doc.replace(replaceNone))
			}
		}
		if len(cases) == 0 {
			continue
		}
		for i, a := range translateInputs(t, translator, cases) {
			server := NewServer(fixed{failsOver(t, cases[i])}, testSources)
			for _, m := range a.Messages {
				if len(m.Request) == 0 {
					continue
				}
				name := cases[i].input.name + "/" + m.Gateway
				message := decodeRequest(t, m.Request)
				rsp, err := server.PostTranslateModify(context.Background(), decodeRequest(t, m.Request))
				if err != nil {
					t.Fatal(err)
				}
				answer := &pb.PostTranslateModifyRequest{
					PostTranslateContext: message.GetPostTranslateContext(), Clusters: rsp.GetClusters(), Secrets: rsp.GetSecrets(), Listeners: rsp.GetListeners(), Routes: rsp.GetRoutes(),
				}
				if diff := cmp.Diff(withoutFailover(message), withoutFailover(answer)); diff != "" {
					t.Errorf("%s: beside aggregates: -message, +answer:\n%s", name, diff)
				}
				if len(answer.GetClusters()) > len(message.GetClusters()) {
					changed++
				}
				j.add(cases[i].input.name, name, message, answer)
			}
		}
		j.validate()
	}
	if *oneInput == "" && changed*sampled < len(all)/2 {
		t.Errorf("%d messages have Services that fail over, too few to be meaningful", changed)
	}
	t.Logf("%d messages have Services that fail over; Envoy validates %d answers, and refuses %d messages", changed, j.validated, j.refused)
}

// failsOver returns a snapshot of an input in which each route fails over at all of its Gateways, and
// other clusters share each Service.
func failsOver(t *testing.T, r *replaced) *ir.Snapshot {
	t.Helper()
	objects := r.known()
	for _, g := range r.sections["gateways"] {
		ns, name := nameOf(g)
		objects = append(objects, object{
			"apiVersion": oursGroup + "/v1alpha1", "kind": "TailscaleGateway", "metadata": object{"namespace": ns, "name": "of-" + name},
			"spec": object{"gatewayRef": object{"name": name}, "failover": object{}},
		})
	}
	c, seen := ir.Contents{}, map[ir.TargetKey]bool{}
	for route := range storeOf(t, objects).Snapshot().Routes() {
		c.Routes = append(c.Routes, route)
		for _, rule := range route.Rules {
			for _, b := range rule.Backends {
				k, ok := b.Failover(route.Key.Kind)
				if ok && !seen[k] {
					seen[k] = true
					c.Targets = append(c.Targets, &ir.Target{Key: k, Shape: ir.Shape{HealthThreshold: 70, HTTP2: k.Protocol == ir.ProtocolGRPC}})
				}
			}
		}
	}
	return ir.NewSnapshot(c)
}

// withoutFailover returns the text of a message without what failover adds to it.
func withoutFailover(r *pb.PostTranslateModifyRequest) []string {
	out := []string{}
	for _, c := range r.GetClusters() {
		if !addedByFailover(c) {
			out = append(out, prototext.Format(c))
		}
	}
	for _, c := range r.GetRoutes() {
		out = append(out, stripFailover(prototext.Format(c)))
	}
	for _, s := range r.GetSecrets() {
		out = append(out, prototext.Format(s))
	}
	for _, l := range r.GetListeners() {
		out = append(out, stripFailover(prototext.Format(l)))
	}
	return out
}

func addedByFailover(c *clusterv3.Cluster) bool {
	return strings.HasPrefix(c.GetName(), aggregatePrefix) || strings.HasPrefix(c.GetName(), elsewherePrefix)
}

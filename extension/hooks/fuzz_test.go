// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"crypto/x509"
	"math/rand/v2"
	"testing"
	"time"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// FuzzTranslate varies messages and snapshots. If Envoy Gateway accepts a message, it must accept
// the result, and a second run must not change the result.
func FuzzTranslate(f *testing.F) {
	var contents []ir.Contents
	n := byte(0)
	for _, name := range sortedCases() {
		tc := translateCases()[name]
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&pb.PostTranslateModifyRequest{
			Clusters: tc.resources.Clusters, Listeners: tc.resources.Listeners, Routes: tc.resources.Routes,
		})
		if err != nil {
			f.Fatal(err)
		}
		contents = append(contents, tc.contents)
		f.Add(b, n, uint64(0))
		f.Add(b, n, uint64(n)+1)
		n++
	}
	f.Fuzz(func(t *testing.T, message []byte, index byte, seed uint64) {
		req := &pb.PostTranslateModifyRequest{}
		if proto.Unmarshal(message, req) != nil {
			return
		}
		resources := Resources{Clusters: req.GetClusters(), Listeners: req.GetListeners(), Routes: req.GetRoutes()}
		valid := validate(resources) == nil
		s := ir.NewSnapshot(vary(contents[int(index)%len(contents)], seed))

		out, _ := Translate(s, testSource, resources)
		if !valid {
			return
		}
		if err := validate(out); err != nil {
			t.Fatalf("Envoy Gateway would refuse the result, and accepts the input: %v", err)
		}
		want := marshal(t, out)
		second, _ := Translate(s, testSource, clone(out))
		if diff := cmp.Diff(want, marshal(t, second)); diff != "" {
			t.Fatalf("Translate(Translate(...)): -want, +got:\n%s", diff)
		}
	})
}

// TestVaried runs all cases over many varied snapshots.
func TestVaried(t *testing.T) {
	for name, tc := range translateCases() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(100) {
				s := ir.NewSnapshot(vary(tc.contents, seed))
				out, _ := Translate(s, testSource, clone(tc.resources))
				if err := validate(out); err != nil {
					t.Fatalf("seed %d: Envoy Gateway would refuse it: %v", seed, err)
				}
				second, _ := Translate(s, testSource, clone(out))
				if diff := cmp.Diff(marshal(t, out), marshal(t, second)); diff != "" {
					t.Fatalf("seed %d: Translate(Translate(...)): -want, +got:\n%s", seed, diff)
				}
			}
		})
	}
}

// vary changes the contents of a snapshot by a seed. Seed zero changes nothing.
func vary(c ir.Contents, seed uint64) ir.Contents {
	if seed == 0 {
		return c
	}
	r := rand.New(rand.NewPCG(seed, seed))
	routes := c.Routes
	c.Routes = nil
	for _, o := range routes {
		v := &ir.Route{Key: o.Key}
		for _, rule := range o.Rules {
			v.Rules = append(v.Rules, varyRule(r, rule))
		}
		c.Routes = append(c.Routes, v)
		if r.IntN(4) == 0 {
			c.Pinned = map[ir.RouteKey][]string{o.Key: {""}}
		}
		if r.IntN(4) == 0 {
			c.Tunings = map[ir.RouteKey]map[string]ir.Tuning{o.Key: {"": {HealthPort: r.Uint32N(2) * 9090, Zones: []ir.ZoneWeight{{Zone: "a", Weight: r.Uint32()}}[:r.IntN(2)]}}}
		}
	}
	if r.IntN(2) == 0 {
		gateway, secret := nn("default", "gw"), nn("default", "client")
		c.Certificates = map[types.NamespacedName]*ir.ClientCertificate{gateway: {Secret: secret, Problem: []string{"", "expired"}[r.IntN(2)]}}
		c.KeyPairs = map[types.NamespacedName]*ir.KeyPair{secret: ir.NewKeyPair([]byte("chain"), []byte("key"), &x509.Certificate{})}
	}
	targets := c.Targets
	c.Targets = nil
	for _, o := range targets {
		if r.IntN(4) == 0 {
			continue
		}
		c.Targets = append(c.Targets, &ir.Target{Key: o.Key, Shape: varyShape(r)})
	}
	return c
}

func varyRule(r *rand.Rand, rule ir.Rule) ir.Rule {
	rule.Exclusive = r.IntN(3) == 0
	backends := rule.Backends
	rule.Backends = nil
	for _, b := range backends {
		b.Kind = ir.BackendKind(r.IntN(4))
		if b.Changes = nil; r.IntN(4) == 0 {
			b.Changes = &ir.Changes{Response: ir.HeaderChange{Remove: []string{"server"}}}
		}
		b.Weight = []uint32{0, 1, 1_000_000, 1<<32 - 1, r.Uint32()}[r.IntN(5)]
		for range r.IntN(3) {
			rule.Backends = append(rule.Backends, b)
		}
	}
	return rule
}

func varyShape(r *rand.Rand) ir.Shape {
	s := ir.Shape{LoadBalancer: []ir.LoadBalancer{"", ir.LeastRequest, ir.RoundRobin, "other"}[r.IntN(4)], HealthThreshold: r.Uint32()}
	if r.IntN(2) == 0 {
		s.HealthCheck = &ir.HealthCheck{
			Path: []string{"", "/health"}[r.IntN(2)], Host: []string{"", "web.example.com"}[r.IntN(2)],
			Interval: time.Duration(r.Int64N(2) * r.Int64()), Timeout: -time.Duration(r.IntN(10)), Healthy: r.Uint32(), Unhealthy: r.Uint32(),
		}
	}
	if r.IntN(2) == 0 {
		s.OutlierDetection = &ir.OutlierDetection{Consecutive5xx: r.Uint32(), Interval: time.Duration(r.Int64N(2)), MaxEjectionPercent: r.Uint32()}
	}
	if r.IntN(2) == 0 {
		s.TLS = &ir.UpstreamTLS{ServerName: []string{"", "web.example.com"}[r.IntN(2)]}
	}
	return s
}

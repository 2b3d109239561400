// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestSharedMessages checks that no translation changes the messages that inserted routes share with
// each other and with the routes that they precede: what is inserted before a route must not depend on
// the other routes of the message, and the routes of Envoy Gateway must stay.
func TestSharedMessages(t *testing.T) {
	timeout := 3 * time.Second
	change := ir.HeaderChange{Set: []ir.Header{{Name: "X-Set", Value: "b"}}, Add: []ir.Header{{Name: "X-Add", Value: "b"}}, Remove: []string{"X-Remove"}}
	rules := map[string]*ir.PolicyRule{
		"Deny":        denies("a", under("/a"), from("100.64.0.0/10")),
		"Redirect":    {Name: "a", Redirect: &ir.PolicyRedirect{Scheme: "https", StatusCode: 301}, Response: change},
		"Route":       {Name: "a", Backends: []ir.BackendRef{ours(0, "web", 1)}, Timeout: &timeout, Request: change},
		"RouteToSome": {Name: "a", Backends: []ir.BackendRef{ours(0, "web", 3), ours(1, "gone", 1)}, RateLimit: &ir.RateLimit{Requests: 1, Period: time.Second}},
		"Named":       {Name: "a", Named: asStrict().Named, Request: change, Timeout: &timeout},
		"Headers":     {Name: "a", Request: change, Response: change, Matches: []ir.PolicyMatch{under("/a"), {Match: ir.Match{Method: "GET"}}}},
		"Timeout":     {Name: "a", Timeout: &timeout},
		"RateLimit":   {Name: "a", RateLimit: &ir.RateLimit{Requests: 1, Period: time.Second}},
		"Certificate": {Name: "a", Certificate: &ir.ClientCertificate{Secret: nn("default", "client")}, Timeout: &timeout},
		"Presented":   {Name: "a", Backends: []ir.BackendRef{ours(0, "web", 1), ours(1, "api", 2)}, Certificate: &ir.ClientCertificate{Secret: nn("default", "client")}},
	}
	bases := sharedBases()
	// message returns a message with the routes of these bases.
	message := func(indexes ...int) Resources {
		r := withStrict("http", strictRoute(strict0, header(prefix("/"), ":method", "GET"), to("api")))
		h := r.Routes[0].GetVirtualHosts()[0]
		h.Routes = nil
		for _, i := range indexes {
			b := bases[i]()
			b.Name = fmt.Sprintf("httproute/default/app/rule/%d/match/0/www_example_com", i)
			h.Routes = append(h.Routes, b)
		}
		return r
	}
	routesOf := func(r Resources) map[string][]string {
		out := map[string][]string{}
		for _, r := range r.Routes[0].GetVirtualHosts()[0].GetRoutes() {
			_, name, ok := strings.Cut(r.GetName(), "httproute/")
			if !ok {
				t.Fatalf("route %s is of no HTTPRoute", r.GetName())
			}
			out[name] = append(out[name], marshalAll(t, []*routev3.Route{r})...)
		}
		return out
	}
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			contents := ir.Contents{
				Targets:  speakTLS(targets("web", "api")),
				Policies: []*ir.RoutePolicy{policy("p", toRoute(""), rule)},
				KeyPairs: map[types.NamespacedName]*ir.KeyPair{nn("default", "client"): ir.NewKeyPair([]byte("chain"), []byte("key"), &x509.Certificate{})},
			}
			s := ir.NewSnapshot(contents)
			want, all := map[string][]string{}, []int{}
			for i := range bases {
				all = append(all, i)
				alone, _ := Translate(s, testSource, message(i))
				for n, rs := range routesOf(alone) {
					want[n] = rs
					if plain := routesOf(message(i))[n]; len(rs) < 2 || rs[len(rs)-1] != plain[0] {
						t.Errorf("%s: want inserted routes before it, and no change of itself", n)
					}
				}
			}
			together, _ := Translate(s, testSource, message(all...))
			if diff := cmp.Diff(want, routesOf(together)); diff != "" {
				t.Errorf("Translate(...): the routes of a message depend on each other: -alone, +together:\n%s", diff)
			}
		})
	}
}

// sharedBases returns functions that make different routes.
func sharedBases() []func() *routev3.Route {
	base := func(edit func(*routev3.Route)) func() *routev3.Route {
		return func() *routev3.Route {
			r := egRoute("", header(prefix("/"), "x-version", "1"), to(rule0))
			r.Metadata = ofResource("HTTPRoute", "app", "first")
			edit(r)
			return r
		}
	}
	value := func(n string) *corev3.HeaderValueOption {
		return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: n, Value: "a"}}
	}
	return []func() *routev3.Route{
		base(func(*routev3.Route) {}),
		base(func(r *routev3.Route) {
			// The lists have room, so that an append would write to them.
			r.RequestHeadersToAdd = append(make([]*corev3.HeaderValueOption, 0, 9), value("X-Set"), value("X-Other"))
			r.ResponseHeadersToAdd = append(make([]*corev3.HeaderValueOption, 0, 9), value("X-Set"), value("X-Other"))
			r.RequestHeadersToRemove = append(make([]string, 0, 9), "X-Gone")
			r.Match.Headers = append(make([]*routev3.HeaderMatcher, 0, 9), r.GetMatch().GetHeaders()...)
			r.TypedPerFilterConfig = map[string]*anypb.Any{"cors": toAny(&corev3.Metadata{})}
			r.GetRoute().Timeout = durationpb.New(time.Minute)
		}),
		base(func(r *routev3.Route) {
			r.GetRoute().RetryPolicy = &routev3.RetryPolicy{RetryOn: "5xx", NumRetries: wrapperspb.UInt32(9)}
		}),
		base(func(r *routev3.Route) {
			w := &routev3.WeightedCluster{Clusters: []*routev3.WeightedCluster_ClusterWeight{
				{Name: rule0, Weight: wrapperspb.UInt32(1)}, {Name: strict, Weight: wrapperspb.UInt32(2)},
			}}
			r.GetRoute().ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: w}
		}),
	}
}

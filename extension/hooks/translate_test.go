// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	webHTTP = "tailscale/services/default/web/80/http"
	webOwn  = webHTTP + "/httproute/default/app"
	webLike = webHTTP + "/settings/#"
	ruleOwn = "tailscale/rule/httproute/default/app/#"
	rule0   = "httproute/default/app/rule/0"
	match0  = rule0 + "/match/0/www_example_com"
)

func nn(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func routeKey(k ir.RouteKind, name string) ir.RouteKey {
	return ir.RouteKey{Kind: k, NamespacedName: nn("default", name)}
}

// ours returns a reference to port 80 of a TailscaleServices of the namespace.
func ours(i int, name string, weight uint32) ir.BackendRef {
	return ir.BackendRef{Kind: ir.BackendServices, NamespacedName: nn("default", name), Port: 80, Weight: weight, Index: i}
}

func svc(i int, weight uint32) ir.BackendRef {
	return ir.BackendRef{Kind: ir.BackendService, NamespacedName: nn("default", "plain"), Port: 8080, Weight: weight, Index: i}
}

func other(i int, weight uint32) ir.BackendRef {
	return ir.BackendRef{Kind: ir.BackendOther, NamespacedName: nn("default", "fqdn"), Port: 443, Weight: weight, Index: i}
}

func rule(backends ...ir.BackendRef) ir.Rule { return ir.Rule{Backends: backends} }

func withMatch(r ir.Rule, m ...ir.Match) ir.Rule {
	r.Matches = m
	return r
}

func owned(r ir.Rule) ir.Rule {
	r.Exclusive = true
	return r
}

func withMirrors(r ir.Rule, m ...ir.BackendRef) ir.Rule {
	r.Mirrors = m
	return r
}

// aged returns a route with that age.
func aged(seconds int64, r *ir.Route) *ir.Route {
	r.Info.Created = time.Unix(seconds, 0).UTC()
	return r
}

func route(k ir.RouteKind, name string, rules ...ir.Rule) *ir.Route {
	return &ir.Route{Key: routeKey(k, name), Rules: rules}
}

// targets returns targets of that name in all protocols, of both kinds.
func targets(names ...string) []*ir.Target {
	var out []*ir.Target
	for _, n := range names {
		for _, k := range []ir.TargetKind{ir.TargetServices, ir.TargetEndpoints} {
			for _, p := range []ir.Protocol{ir.ProtocolHTTP, ir.ProtocolGRPC, ir.ProtocolTCP, ir.ProtocolUDP} {
				out = append(out, &ir.Target{
					Key:   ir.TargetKey{Kind: k, Namespace: "default", Name: n, Port: 80, Protocol: p},
					Shape: ir.Shape{LoadBalancer: ir.LeastRequest, HealthThreshold: 70},
				})
			}
		}
	}
	return out
}

// missing marks targets whose objects do not exist.
func missing(ts []*ir.Target) []*ir.Target {
	for _, t := range ts {
		t.Missing = true
	}
	return ts
}

type translateCase struct {
	reason    string
	contents  ir.Contents
	resources Resources
	want      view
	skipped   map[Reason]int
}

func translateCases() map[string]translateCase {
	cases := map[string]translateCase{}
	for _, group := range []map[string]translateCase{httpCases(), splitCases(), keptCases(), mirrorCases(), movedCases(), l4Cases(), featureCases(), tuningCases(), siblingCases(), failoverCases()} {
		for name, tc := range group {
			cases[name] = tc
		}
	}
	return cases
}

func TestTranslate(t *testing.T) {
	for name, tc := range translateCases() {
		t.Run(name, func(t *testing.T) {
			out, summary := Translate(ir.NewSnapshot(tc.contents), testSource, clone(tc.resources))
			if diff := cmp.Diff(tc.want, viewOf(t, out)); diff != "" {
				t.Errorf("\n%s\nTranslate(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.skipped, summary.Skipped, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nTranslate(...): skipped rules: -want, +got:\n%s", tc.reason, diff)
			}
			if err := validate(out); err != nil {
				t.Errorf("\n%s\nTranslate(...): Envoy Gateway would refuse it: %v", tc.reason, err)
			}
		})
	}
}

// TestIdempotent translates the output again.
func TestIdempotent(t *testing.T) {
	for name, tc := range translateCases() {
		t.Run(name, func(t *testing.T) {
			s := ir.NewSnapshot(tc.contents)
			first, _ := Translate(s, testSource, clone(tc.resources))
			want := marshal(t, first)
			twice, _ := Translate(s, testSource, clone(first))
			if diff := cmp.Diff(want, marshal(t, twice)); diff != "" {
				t.Errorf("\n%s\nTranslate(Translate(...)): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeterministic shuffles the contents of a snapshot.
func TestDeterministic(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, tc := range translateCases() {
		t.Run(name, func(t *testing.T) {
			first, _ := Translate(ir.NewSnapshot(tc.contents), testSource, clone(tc.resources))
			want := marshal(t, first)
			for range 10 {
				c := tc.contents
				c.Routes = append([]*ir.Route(nil), c.Routes...)
				c.Targets = append([]*ir.Target(nil), c.Targets...)
				r.Shuffle(len(c.Routes), func(i, j int) { c.Routes[i], c.Routes[j] = c.Routes[j], c.Routes[i] })
				r.Shuffle(len(c.Targets), func(i, j int) { c.Targets[i], c.Targets[j] = c.Targets[j], c.Targets[i] })
				got, _ := Translate(ir.NewSnapshot(c), testSource, clone(tc.resources))
				if diff := cmp.Diff(want, marshal(t, got)); diff != "" {
					t.Fatalf("\n%s\nTranslate(...) of a shuffled snapshot: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func httpCases() map[string]translateCase {
	two := []*ir.Route{
		aged(2, route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1)))),
		aged(1, route(ir.KindHTTPRoute, "other", rule(ours(0, "web", 1)))),
		route(ir.KindHTTPRoute, "third", rule(ours(0, "web", 1))),
	}
	clusters := func(change ...func(*clusterv3.Cluster)) []*clusterv3.Cluster {
		return []*clusterv3.Cluster{
			egCluster("httproute/default/other/rule/0"), egCluster("plain"), egCluster(rule0, change...), egCluster("httproute/default/third/rule/0"),
		}
	}
	routes := egRoutes(
		egRoute(match0, prefix("/"), to(rule0)),
		egRoute("httproute/default/other/rule/0/match/0/*", prefix("/"), to("httproute/default/other/rule/0")),
		egRoute("httproute/default/third/rule/0/match/0/*", prefix("/"), to("httproute/default/third/rule/0")),
		egRoute("httproute/default/none/rule/0/match/0/*", prefix("/"), to("plain")),
	)
	return map[string]translateCase{
		"Shared": {
			reason:    "Routes to one target should share its cluster, and the rest should keep its order.",
			contents:  ir.Contents{Routes: two, Targets: targets("web")},
			resources: Resources{Clusters: clusters(), Routes: routes},
			want: view{
				Clusters: []string{"plain", webHTTP + " < " + webHTTP},
				Sends: []string{
					match0 + " > " + webHTTP,
					"httproute/default/other/rule/0/match/0/* > " + webHTTP,
					"httproute/default/third/rule/0/match/0/* > " + webHTTP,
					"httproute/default/none/rule/0/match/0/* > plain",
				},
			},
		},
		"OneDiffers": {
			reason:    "A rule with a patched cluster should have a separate one, with the extension's endpoints.",
			contents:  ir.Contents{Routes: two, Targets: targets("web")},
			resources: Resources{Clusters: clusters(slowConnect), Routes: routes},
			want: view{
				Clusters: []string{"plain", webHTTP + " < " + webHTTP, webLike + " < " + webHTTP},
				Sends: []string{
					match0 + " > " + webLike,
					"httproute/default/other/rule/0/match/0/* > " + webHTTP,
					"httproute/default/third/rule/0/match/0/* > " + webHTTP,
					"httproute/default/none/rule/0/match/0/* > plain",
				},
			},
		},
		"Pinned": {
			reason: "A rule with a separate policy should have a separate cluster.",
			contents: ir.Contents{
				Routes: two, Targets: targets("web"),
				Pinned: map[ir.RouteKey][]string{routeKey(ir.KindHTTPRoute, "app"): {""}},
			},
			resources: Resources{Clusters: clusters(), Routes: routes},
			want: view{
				Clusters: []string{"plain", webHTTP + " < " + webHTTP, webOwn + " < " + webHTTP},
				Sends: []string{
					match0 + " > " + webOwn,
					"httproute/default/other/rule/0/match/0/* > " + webHTTP,
					"httproute/default/third/rule/0/match/0/* > " + webHTTP,
					"httproute/default/none/rule/0/match/0/* > plain",
				},
			},
		},
		"GRPC": {
			reason:   "A GRPCRoute should have a cluster for its own protocol.",
			contents: ir.Contents{Routes: []*ir.Route{route(ir.KindGRPCRoute, "app", rule(ours(0, "web", 1)))}, Targets: targets("web")},
			resources: Resources{
				Clusters: []*clusterv3.Cluster{egCluster("grpcroute/default/app/rule/0")},
				Routes:   egRoutes(egRoute("grpcroute/default/app/rule/0/match/-1/www_example_com", prefix("/"), to("grpcroute/default/app/rule/0"))),
			},
			want: view{
				Clusters: []string{"tailscale/services/default/web/80/grpc < tailscale/services/default/web/80/grpc"},
				Sends:    []string{"grpcroute/default/app/rule/0/match/-1/www_example_com > tailscale/services/default/web/80/grpc"},
			},
		},
		"Endpoints": {
			reason: "A TailscaleEndpoints should have a cluster of its kind, also under the second scheme of names.",
			contents: ir.Contents{
				Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", rule(ir.BackendRef{
					Kind: ir.BackendEndpoints, NamespacedName: nn("default", "web"), Port: 80, Weight: 1,
				}))},
				Targets: targets("web"),
			},
			resources: Resources{
				Clusters: []*clusterv3.Cluster{egCluster(rule0)},
				Routes: []*routev3.RouteConfiguration{{Name: "http-80", VirtualHosts: []*routev3.VirtualHost{{
					Name: "*", Domains: []string{"*"}, Routes: []*routev3.Route{egRoute(match0, prefix("/"), to(rule0))},
				}}}},
			},
			want: view{
				Clusters: []string{"tailscale/endpoints/default/web/80/http < tailscale/endpoints/default/web/80/http"},
				Sends:    []string{match0 + " > tailscale/endpoints/default/web/80/http"},
			},
		},
		"ZoneAware": {
			reason:   "A rule with a cluster for each backend, which no route uses, should get the shared one.",
			contents: ir.Contents{Routes: two[:1], Targets: targets("web")},
			resources: Resources{
				Clusters: []*clusterv3.Cluster{egCluster(rule0 + "/backend/0")},
				Routes:   egRoutes(egRoute(match0, prefix("/"), to())),
			},
			want: view{
				Clusters: []string{webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + webHTTP + " else INTERNAL_SERVER_ERROR"},
			},
		},
		"ZoneAwareMissing": {
			reason:   "The route should be one that Envoy accepts even if its port has no target.",
			contents: ir.Contents{Routes: two[:1], Targets: missing(targets("web"))},
			resources: Resources{
				Clusters: []*clusterv3.Cluster{egCluster(rule0 + "/backend/0")},
				Routes:   egRoutes(egRoute(match0, prefix("/"), to())),
			},
			want: view{
				Clusters: []string{rule0 + "/backend/0"},
				Sends:    []string{match0 + " > invalid-backend-cluster=1 else INTERNAL_SERVER_ERROR"},
			},
			skipped: map[Reason]int{Unresolved: 1},
		},
		"ZoneAwareUnknown": {
			reason: "The same should hold while the snapshot lacks the route.",
			resources: Resources{
				Clusters: []*clusterv3.Cluster{egCluster(rule0 + "/backend/0")},
				Routes:   egRoutes(egRoute(match0, prefix("/"), to())),
			},
			want: view{
				Clusters: []string{rule0 + "/backend/0"},
				Sends:    []string{match0 + " > invalid-backend-cluster=1 else INTERNAL_SERVER_ERROR"},
			},
		},
		"OtherBackends": {
			reason:   "A rule with more backends in the message than in the snapshot should stay as it is.",
			contents: ir.Contents{Routes: two[:1], Targets: targets("web")},
			resources: Resources{
				Clusters: []*clusterv3.Cluster{egCluster(rule0 + "/backend/0"), egCluster(rule0 + "/backend/1")},
				Routes:   egRoutes(egRoute(match0, prefix("/"), to(rule0+"/backend/1=1"))),
			},
			want: view{
				Clusters: []string{rule0 + "/backend/0", rule0 + "/backend/1"},
				Sends:    []string{match0 + " > " + rule0 + "/backend/1=1 else INTERNAL_SERVER_ERROR"},
			},
			skipped: map[Reason]int{Stale: 1},
		},
		"CORS": {
			reason: "The route that Envoy Gateway adds for preflights should follow the rule.",
			contents: ir.Contents{
				Routes:  []*ir.Route{route(ir.KindHTTPRoute, "app", withMatch(rule(ours(0, "web", 1)), ir.Match{Method: "GET"}))},
				Targets: targets("web"),
			},
			resources: Resources{
				Clusters: []*clusterv3.Cluster{egCluster(rule0)},
				Routes: egRoutes(
					egRoute(match0, header(prefix("/"), ":method", "GET"), to(rule0)),
					egRoute(rule0+"/match/0/cors-preflight/www_example_com", header(prefix("/"), ":method", "OPTIONS"), to(rule0)),
				),
			},
			want: view{
				Clusters: []string{webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + webHTTP, rule0 + "/match/0/cors-preflight/www_example_com > " + webHTTP},
			},
		},
		"HostLikeCORS": {
			reason: "A host with the name of a preflight's route is a host.",
			contents: ir.Contents{
				Routes:  []*ir.Route{route(ir.KindHTTPRoute, "app", at("/web", rule(ours(0, "web", 1))))},
				Targets: targets("web"),
			},
			resources: Resources{
				Clusters: []*clusterv3.Cluster{egCluster(rule0)},
				Routes:   egRoutes(egRoute(rule0+"/match/0/cors-preflight_example_com", prefix("/web"), to(rule0))),
			},
			want: view{
				Clusters: []string{webHTTP + " < " + webHTTP},
				Sends:    []string{rule0 + "/match/0/cors-preflight_example_com > " + webHTTP},
			},
		},
		"Unknown": {
			reason:    "A rule whose target the snapshot lacks should stay as it is and answer 503.",
			contents:  ir.Contents{Routes: two[:1]},
			resources: Resources{Clusters: []*clusterv3.Cluster{egCluster(rule0)}, Routes: egRoutes(egRoute(match0, prefix("/"), to(rule0)))},
			want:      view{Clusters: []string{rule0}, Sends: []string{match0 + " > " + rule0}},
			skipped:   map[Reason]int{Unresolved: 1},
		},
		"Missing": {
			reason:    "A rule whose object does not exist should stay as it is: Envoy Gateway answers 500 by itself.",
			contents:  ir.Contents{Routes: two[:1], Targets: missing(targets("web"))},
			resources: Resources{Clusters: []*clusterv3.Cluster{egCluster(rule0)}, Routes: egRoutes(egRoute(match0, prefix("/"), to(rule0)))},
			want:      view{Clusters: []string{rule0}, Sends: []string{match0 + " > " + rule0}},
			skipped:   map[Reason]int{Unresolved: 1},
		},
		"Patched": {
			reason:    "A route that a patch sent to another cluster should keep it.",
			contents:  ir.Contents{Routes: two[:1], Targets: targets("web")},
			resources: Resources{Clusters: []*clusterv3.Cluster{egCluster(rule0)}, Routes: egRoutes(egRoute(match0, prefix("/"), to("elsewhere")))},
			want:      view{Clusters: []string{rule0}, Sends: []string{match0 + " > elsewhere"}},
			skipped:   map[Reason]int{Patched: 1},
		},
	}
}

func l4Cases() map[string]translateCase {
	const tcp, udp, tls = "tcproute/default/db/rule/-1", "udproute/default/dns/rule/-1", "tlsroute/default/sni/rule/-1"
	const webTCP, webUDP = "tailscale/services/default/web/80/tcp", "tailscale/services/default/web/80/udp"
	l4 := func(l *listenerv3.Listener, clusters ...*clusterv3.Cluster) Resources {
		return Resources{Listeners: []*listenerv3.Listener{l}, Clusters: clusters}
	}
	return map[string]translateCase{
		"TCP": {
			reason:    "A TCPRoute to one target should use its shared cluster.",
			contents:  ir.Contents{Routes: []*ir.Route{route(ir.KindTCPRoute, "db", rule(ours(0, "web", 1)))}, Targets: targets("web")},
			resources: l4(egTCP("tcproute/default/db", tcp), egCluster(tcp)),
			want:      view{Clusters: []string{webTCP + " < " + webTCP}, Sends: []string{"tcproute/default/db > " + webTCP}},
		},
		"TCPSplit": {
			reason: "A TCPRoute beside a Service should keep Envoy Gateway's cluster for it, by the route's weights.",
			contents: ir.Contents{
				Routes:  []*ir.Route{route(ir.KindTCPRoute, "db", rule(svc(0, 3), ours(1, "web", 5), ours(2, "db", 2)))},
				Targets: targets("web", "db"),
			},
			resources: l4(egTCP("tcproute/default/db", tcp), egCluster(tcp)),
			want: view{
				Clusters: []string{tcp, "tailscale/services/default/db/80/tcp < tailscale/services/default/db/80/tcp", webTCP + " < " + webTCP},
				Sends:    []string{"tcproute/default/db > " + tcp + "=3 tailscale/services/default/db/80/tcp=2 " + webTCP + "=5"},
			},
		},
		"TCPOtherNamespace": {
			reason: "A TCPRoute must not use a backend of another namespace: Envoy Gateway drops the reference.",
			contents: ir.Contents{
				Routes: []*ir.Route{route(ir.KindTCPRoute, "db", rule(ir.BackendRef{
					Kind: ir.BackendServices, NamespacedName: nn("secret", "web"), Port: 80, Weight: 1,
				}))},
				Targets: []*ir.Target{{Key: ir.TargetKey{Kind: ir.TargetServices, Namespace: "secret", Name: "web", Port: 80, Protocol: ir.ProtocolTCP}}},
			},
			resources: l4(egTCP("tcproute/default/db", tcp), egCluster(tcp)),
			want:      view{Clusters: []string{tcp}, Sends: []string{"tcproute/default/db > " + tcp}},
			skipped:   map[Reason]int{Unresolved: 1},
		},
		"TLS": {
			reason:    "A TLSRoute should use the cluster of TCP.",
			contents:  ir.Contents{Routes: []*ir.Route{route(ir.KindTLSRoute, "sni", rule(ours(0, "web", 1)))}, Targets: targets("web")},
			resources: l4(egTCP("tlsroute/default/sni", tls), egCluster(tls)),
			want:      view{Clusters: []string{webTCP + " < " + webTCP}, Sends: []string{"tlsroute/default/sni > " + webTCP}},
		},
		"TLSManyRules": {
			reason:    "A TLSRoute whose rules are pooled should keep their one cluster.",
			contents:  ir.Contents{Routes: []*ir.Route{route(ir.KindTLSRoute, "sni", owned(rule(ours(0, "web", 1), svc(1, 1))))}, Targets: targets("web")},
			resources: l4(egTCP("tlsroute/default/sni", tls), egCluster(tls)),
			want:      view{Clusters: []string{tls + " < tailscale/rule/tlsroute/default/sni/#"}, Sends: []string{"tlsroute/default/sni > " + tls}},
		},
		"UDP": {
			reason:    "A UDPRoute to one target should use its shared cluster.",
			contents:  ir.Contents{Routes: []*ir.Route{route(ir.KindUDPRoute, "dns", rule(ours(0, "web", 1)))}, Targets: targets("web")},
			resources: l4(egUDP(udp), egCluster(udp)),
			want:      view{Clusters: []string{webUDP + " < " + webUDP}, Sends: []string{"udp > " + webUDP}},
		},
		"UDPSplit": {
			reason:    "UDP has no weighted clusters: one should hold all endpoints.",
			contents:  ir.Contents{Routes: []*ir.Route{route(ir.KindUDPRoute, "dns", rule(ours(0, "web", 1), svc(1, 3)))}, Targets: targets("web")},
			resources: l4(egUDP(udp), egCluster(udp)),
			want:      view{Clusters: []string{udp + " < tailscale/rule/udproute/default/dns/#"}, Sends: []string{"udp > " + udp}},
		},
		"UDPUnsupported": {
			reason:    "A backend whose endpoints only Envoy Gateway knows cannot be in the extension's list.",
			contents:  ir.Contents{Routes: []*ir.Route{route(ir.KindUDPRoute, "dns", rule(ours(0, "web", 1), other(1, 3)))}, Targets: targets("web")},
			resources: l4(egUDP(udp), egCluster(udp)),
			want:      view{Clusters: []string{udp}, Sends: []string{"udp > " + udp}},
			skipped:   map[Reason]int{Unsupported: 1},
		},
	}
}

// sortedCases returns the names of the cases, sorted for a stable order.
func sortedCases() []string {
	return slices.Sorted(maps.Keys(translateCases()))
}

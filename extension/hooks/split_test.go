// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// oneRule returns one HTTP rule, its clusters, and its route's action.
func oneRule(r ir.Rule, a *routev3.RouteAction, clusters ...*clusterv3.Cluster) (ir.Contents, Resources) {
	return ir.Contents{Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", r)}, Targets: targets("web", "db")},
		Resources{Clusters: clusters, Routes: egRoutes(egRoute(match0, prefix("/"), a))}
}

func oneCase(reason string, r ir.Rule, a *routev3.RouteAction, clusters []*clusterv3.Cluster, want view) translateCase {
	c, resources := oneRule(r, a, clusters...)
	return translateCase{reason: reason, contents: c, resources: resources, want: want}
}

func egClusters(names ...string) []*clusterv3.Cluster {
	out := make([]*clusterv3.Cluster, 0, len(names))
	for _, n := range names {
		out = append(out, egCluster(n))
	}
	return out
}

const dbHTTP = "tailscale/services/default/db/80/http"

func splitCases() map[string]translateCase {
	foreign := ours(1, "web", 4)
	foreign.Namespace = "secret"
	return map[string]translateCase{
		"SplitOurs": oneCase("Two Tailscale backends should split by weight, and Envoy Gateway's cluster should go.",
			rule(ours(0, "web", 9), ours(1, "db", 1)), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{dbHTTP + " < " + dbHTTP, webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + dbHTTP + "=1 " + webHTTP + "=9"},
			}),
		"SplitTwice": oneCase("A target that a rule names twice should get both weights.",
			rule(ours(0, "web", 9), ours(1, "web", 1)), to(rule0), egClusters(rule0),
			view{Clusters: []string{webHTTP + " < " + webHTTP}, Sends: []string{match0 + " > " + webHTTP}}),
		"SplitPooled": oneCase("Siblings in one cluster should keep it, by the sum of their weights.",
			rule(svc(0, 70), ours(1, "web", 25), other(2, 5)), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{rule0, webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=75 " + webHTTP + "=25"},
			}),
		"SplitPerBackend": oneCase("Siblings with separate clusters should keep them, and the Tailscale backends' unused ones should go.",
			rule(svc(0, 70), ours(1, "web", 25), other(2, 5)),
			to(rule0+"/backend/0=70", rule0+"/backend/2=5"), egClusters(rule0+"/backend/0", rule0+"/backend/1", rule0+"/backend/2"),
			view{
				Clusters: []string{rule0 + "/backend/0", rule0 + "/backend/2", webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "/backend/0=70 " + rule0 + "/backend/2=5 " + webHTTP + "=25 else INTERNAL_SERVER_ERROR"},
			}),
		"SplitInvalidSibling": oneCase("The weight of siblings without endpoints should keep failing.",
			rule(svc(0, 70), ours(1, "web", 25), svc(2, 5)),
			to("invalid-backend-cluster=5", rule0+"/backend/0=70"), egClusters(rule0+"/backend/0", rule0+"/backend/1", rule0+"/backend/2"),
			view{
				Clusters: []string{rule0 + "/backend/0", rule0 + "/backend/2", webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > invalid-backend-cluster=5 " + rule0 + "/backend/0=70 " + webHTTP + "=25 else INTERNAL_SERVER_ERROR"},
			}),
		"SplitNotPermitted": oneCase("The weight of a reference without a grant should fail.",
			rule(ours(0, "web", 6), foreign), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > invalid-backend-cluster=4 " + webHTTP + "=6 else INTERNAL_SERVER_ERROR"},
			}),
		"SplitUnknown": oneCase("The weight of an unknown target should fail, and Services should keep theirs.",
			rule(svc(0, 6), ours(1, "gone", 4)), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{rule0},
				Sends:    []string{match0 + " > invalid-backend-cluster=4 " + rule0 + "=6 else INTERNAL_SERVER_ERROR"},
			}),
		"SplitOtherWeights": oneCase("Weights that the snapshot does not have yet must not fail requests.",
			rule(svc(0, 50), ours(1, "web", 50)), to(rule0+"/backend/0=10"), egClusters(rule0+"/backend/0", rule0+"/backend/1"),
			view{
				Clusters: []string{rule0 + "/backend/0", webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "/backend/0=10 " + webHTTP + "=50 else INTERNAL_SERVER_ERROR"},
			}),
		"SplitMerged": oneCase("Siblings that Envoy Gateway merged with those of other routes should stay merged.",
			rule(svc(0, 3), ours(1, "web", 1)), to("service/default/plain/8080=3"), egClusters(rule0+"/backend/1", "service/default/plain/8080"),
			view{
				Clusters: []string{"service/default/plain/8080", webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > service/default/plain/8080=3 " + webHTTP + "=1 else INTERNAL_SERVER_ERROR"},
			}),
		"ZeroWeight": oneCase("A backend of weight zero should not count.",
			rule(svc(0, 0), ours(1, "web", 1), ours(2, "db", 0)), to(rule0), egClusters(rule0),
			view{Clusters: []string{webHTTP + " < " + webHTTP}, Sends: []string{match0 + " > " + webHTTP}}),
	}
}

func keptCases() map[string]translateCase {
	filtered := ours(1, "web", 1)
	filtered.Changes = &ir.Changes{Request: ir.HeaderChange{Set: []ir.Header{{Name: "X-To", Value: "100%"}}}, Hostname: "web.example.com"}
	refused := ours(1, "web", 1)
	refused.Changes = &ir.Changes{Refused: []string{"RequestRedirect"}}
	cases := map[string]translateCase{
		"FilterRefusedAlone": oneCase("Requests to a reference with a filter that is not applied should fail, as Gateway API requires.",
			rule(refused), to(rule0), egClusters(rule0),
			view{Clusters: []string{rule0}, Sends: []string{match0 + " > invalid-backend-cluster=1 else INTERNAL_SERVER_ERROR"}}),
		"FilterRefusedBeside": oneCase("Requests to other references of the rule should not fail.",
			rule(refused, ours(2, "web", 3)), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > invalid-backend-cluster=1 " + webHTTP + "=3 else INTERNAL_SERVER_ERROR"},
			}),
		"FilterRefusedSplit": oneCase("Envoy Gateway's cluster for such a reference should not be used.",
			rule(svc(0, 3), refused), to(rule0+"/backend/0=3", rule0+"/backend/1=1"), egClusters(rule0+"/backend/0", rule0+"/backend/1"),
			view{
				Clusters: []string{rule0 + "/backend/0", rule0 + "/backend/1"},
				Sends:    []string{match0 + " > invalid-backend-cluster=1 " + rule0 + "/backend/0=3 else INTERNAL_SERVER_ERROR"},
			}),
		"FilterRefusedMirror": oneCase("A rule with such a reference should still mirror.",
			withMirrors(rule(refused), ours(2, "web", 1)), mirrorTo(to(rule0), rule0+"-mirror-2"), egClusters(rule0, rule0+"-mirror-2"),
			view{
				Clusters: []string{rule0, webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > invalid-backend-cluster=1 else INTERNAL_SERVER_ERROR mirror " + webHTTP},
			}),
		"SessionPersistence": oneCase("A rule with session persistence should have one cluster for all backends.",
			owned(rule(ours(0, "web", 1), svc(1, 1))), to(rule0), egClusters(rule0),
			view{Clusters: []string{ruleOwn + " < " + ruleOwn}, Sends: []string{match0 + " > " + ruleOwn}}),
		"SessionPersistenceWithOther": oneCase("It should split if only Envoy Gateway knows some endpoints.",
			owned(rule(ours(0, "web", 1), other(1, 1))), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{rule0, webOwn + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webOwn + "=1"},
			}),
		"ConsistentHash": oneCase("A rule with a hash policy should have one cluster, with one ring over all backends.",
			rule(ours(0, "web", 1), svc(1, 1)), hashed(to(rule0)), []*clusterv3.Cluster{egCluster(rule0, maglev)},
			view{Clusters: []string{ruleOwn + " < " + ruleOwn}, Sends: []string{match0 + " > " + ruleOwn}}),
		"HashedSplit": oneCase("A split should choose its cluster by the hash, as Envoy Gateway's clusters do.",
			rule(ours(0, "web", 1), svc(1, 1)), hashed(to(rule0)), egClusters(rule0),
			view{
				Clusters: []string{rule0, webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webHTTP + "=1 by hash"},
			}),
		"FilterOnReference": oneCase("A reference with filters should not share a cluster, and should keep its filters.",
			rule(svc(0, 1), filtered), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{rule0, webOwn + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webOwn + "=1 set X-To: 100%% as web.example.com"},
			}),
		"FilterAlone": oneCase("The same should hold if the rule has no other backend.",
			rule(filtered), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{webOwn + " < " + webHTTP},
				Sends:    []string{match0 + " > " + webOwn + "=1 set X-To: 100%% as web.example.com"},
			}),
		"FiltersTwice": oneCase("Filters of one reference should not apply to another, even to the same target.",
			rule(filtered, ours(2, "web", 3)), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{webHTTP + " < " + webHTTP, webOwn + " < " + webHTTP},
				Sends:    []string{match0 + " > " + webHTTP + "=3 " + webOwn + "=1 set X-To: 100%% as web.example.com"},
			}),
		"FilterAndSession": oneCase("One cluster cannot separate backends with different filters.",
			owned(rule(filtered, svc(2, 1))), to(rule0), egClusters(rule0),
			view{
				Clusters: []string{rule0, webOwn + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + "=1 " + webOwn + "=1 set X-To: 100%% as web.example.com"},
			}),
		"Single": oneCase("A rule with separate settings should have a separate cluster.",
			owned(rule(ours(0, "web", 1))), to(rule0), egClusters(rule0),
			view{Clusters: []string{webOwn + " < " + webHTTP}, Sends: []string{match0 + " > " + webOwn}}),
	}
	tls, resources := oneRule(owned(rule(ours(0, "web", 1), svc(1, 1))), to(rule0), egClusters(rule0)...)
	tls.Targets = targets("web")
	for _, target := range tls.Targets {
		target.Shape.TLS = &ir.UpstreamTLS{ServerName: "web.example.com"}
	}
	cases["TLSBesidePlain"] = translateCase{
		reason: "A cluster cannot speak TLS to some endpoints only, and Tailscale backends must not get plaintext.", contents: tls, resources: resources,
		want: view{
			Clusters: []string{rule0, webOwn + " < " + webHTTP},
			Sends:    []string{match0 + " > " + rule0 + "=1 " + webOwn + "=1"},
		},
	}
	pinned, resources := oneRule(rule(svc(0, 1), ours(1, "web", 1)), to(rule0), egClusters(rule0)...)
	pinned.Pinned = map[ir.RouteKey][]string{routeKey(ir.KindHTTPRoute, "app"): {""}}
	cases["PinnedSplit"] = translateCase{
		reason: "A split with a separate policy should apply it to the Tailscale backend too.", contents: pinned, resources: resources,
		want: view{
			Clusters: []string{rule0, webOwn + " < " + webHTTP},
			Sends:    []string{match0 + " > " + rule0 + "=1 " + webOwn + "=1"},
		},
	}
	granted, resources := oneRule(rule(ir.BackendRef{Kind: ir.BackendServices, NamespacedName: nn("secret", "web"), Port: 80, Weight: 1}), to(rule0), egClusters(rule0)...)
	granted.Targets = []*ir.Target{{Key: ir.TargetKey{Kind: ir.TargetServices, Namespace: "secret", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}}}
	granted.Grants = []ir.Grant{{Kind: ir.KindHTTPRoute, Namespace: "default", To: ir.BackendServices, Object: nn("secret", "")}}
	cases["Granted"] = translateCase{
		reason: "A ReferenceGrant should permit another namespace.", contents: granted, resources: resources,
		want: view{
			Clusters: []string{"tailscale/services/secret/web/80/http < tailscale/services/secret/web/80/http"},
			Sends:    []string{match0 + " > tailscale/services/secret/web/80/http"},
		},
	}
	return cases
}

func mirrorCases() map[string]translateCase {
	const mirror = rule0 + "-mirror-2"
	unknown := oneCase("A mirror to an unknown target should stay as it is.",
		withMirrors(rule(svc(0, 1)), ours(2, "gone", 1)), mirrorTo(to(rule0), mirror), egClusters(rule0, mirror),
		view{Clusters: []string{rule0, mirror}, Sends: []string{match0 + " > " + rule0 + " mirror " + mirror}})
	unknown.skipped = map[Reason]int{Unresolved: 1}
	return map[string]translateCase{
		"MirrorUnknown": unknown,
		"OnlyZeroWeight": oneCase("A rule without Tailscale backends should neither change nor count.",
			rule(svc(0, 1), ours(1, "web", 0)), to(rule0), egClusters(rule0),
			view{Clusters: []string{rule0}, Sends: []string{match0 + " > " + rule0}}),
		"Mirror": oneCase("A mirror of a Service's requests should go to the shared cluster.",
			withMirrors(rule(svc(0, 1)), ours(2, "web", 1)), mirrorTo(to(rule0), mirror), egClusters(rule0, mirror),
			view{
				Clusters: []string{rule0, webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + rule0 + " mirror " + webHTTP},
			}),
		"MirrorBeside": oneCase("A mirror should share a cluster with a rule's backend, which provides the settings.",
			withMirrors(rule(ours(0, "web", 1)), ours(2, "web", 1)), mirrorTo(to(rule0), mirror),
			[]*clusterv3.Cluster{egCluster(rule0, slowConnect), egCluster(mirror)},
			view{
				Clusters: []string{webHTTP + " < " + webHTTP},
				Sends:    []string{match0 + " > " + webHTTP + " mirror " + webHTTP},
			}),
	}
}

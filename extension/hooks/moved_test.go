// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"slices"
	"strconv"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// at returns a rule for a path.
func at(path string, r ir.Rule) ir.Rule {
	return withMatch(r, ir.Match{Path: path, PathType: "PathPrefix"})
}

func called(name string, r ir.Rule) ir.Rule {
	r.Name = name
	return r
}

// message returns the resources that Envoy Gateway makes of a route with a rule for each path.
// change changes clusters by the rule's index.
func message(change map[int]func(*clusterv3.Cluster), paths ...string) Resources {
	var clusters []*clusterv3.Cluster
	var routes []*routev3.Route
	for i, p := range paths {
		name := "httproute/default/app/rule/" + strconv.Itoa(i)
		c := egCluster(name)
		if fn := change[i]; fn != nil {
			fn(c)
		}
		clusters = append(clusters, c)
		routes = append(routes, egRoute(name+"/match/0/*", prefix(p), to(name)))
	}
	return Resources{Clusters: clusters, Routes: egRoutes(routes...)}
}

// sendsOf returns the destinations of a message made by message: the cluster of each index.
func sendsOf(clusters ...string) []string {
	var out []string
	for i, c := range clusters {
		out = append(out, "httproute/default/app/rule/"+strconv.Itoa(i)+"/match/0/* > "+c)
	}
	return out
}

// movedCases returns cases in which a rule has another index in the message than in the snapshot,
// or several rules of a route name one target.
func movedCases() map[string]translateCase {
	web, db := at("/web", rule(ours(0, "web", 1))), at("/db", rule(ours(0, "db", 1)))
	contents := func(rules ...ir.Rule) ir.Contents {
		return ir.Contents{Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", rules...)}, Targets: targets("web", "db")}
	}
	pinned := func(name string, c ir.Contents) ir.Contents {
		c.Pinned = map[ir.RouteKey][]string{routeKey(ir.KindHTTPRoute, "app"): {name}}
		return c
	}
	const rule1, dbOwn = "httproute/default/app/rule/1", dbHTTP + "/httproute/default/app"
	return map[string]translateCase{
		"Inserted": {
			reason:   "A rule that the snapshot lacks should stay as it is, and the matches should identify the rules after it.",
			contents: contents(web, db), resources: message(nil, "/new", "/web", "/db"),
			want: view{
				Clusters: []string{rule0, dbHTTP + " < " + dbHTTP, webHTTP + " < " + webHTTP},
				Sends:    sendsOf(rule0, webHTTP, dbHTTP),
			},
			skipped: map[Reason]int{Stale: 1},
		},
		"InsertedOwn": {
			reason:   "Clusters that are not shared should keep their names.",
			contents: pinned("", contents(web, db)), resources: message(nil, "/new", "/web", "/db"),
			want: view{
				Clusters: []string{rule0, dbOwn + " < " + dbHTTP, webOwn + " < " + webHTTP},
				Sends:    sendsOf(rule0, webOwn, dbOwn),
			},
			skipped: map[Reason]int{Stale: 1},
		},
		"TakenAway": {
			reason:   "The same should hold for a rule that only the snapshot still has.",
			contents: pinned("", contents(at("/old", rule(ours(0, "web", 1))), web, db)), resources: message(nil, "/web", "/db"),
			want: view{
				Clusters: []string{dbOwn + " < " + dbHTTP, webOwn + " < " + webHTTP},
				Sends:    sendsOf(webOwn, dbOwn),
			},
		},
		"MovedToService": {
			reason:   "A rule of a Service at that index should not change.",
			contents: contents(web, at("/plain", rule(svc(0, 1)))), resources: message(nil, "/plain", "/web"),
			want: view{Clusters: []string{rule0, webHTTP + " < " + webHTTP}, Sends: sendsOf(rule0, webHTTP)},
		},
		"OwnTogether": {
			reason:   "Rules of one route with the same settings should share a cluster for a target.",
			contents: pinned("", contents(web, at("/too", rule(ours(0, "web", 1))))), resources: message(nil, "/web", "/too"),
			want: view{Clusters: []string{webOwn + " < " + webHTTP}, Sends: sendsOf(webOwn, webOwn)},
		},
		"OwnApart": {
			reason:    "Rules with different settings should have separate clusters.",
			contents:  pinned("", contents(web, at("/too", rule(ours(0, "web", 1))), at("/three", rule(ours(0, "web", 1))))),
			resources: message(map[int]func(*clusterv3.Cluster){1: slowConnect}, "/web", "/too", "/three"),
			want: view{
				Clusters: []string{webOwn + " < " + webHTTP, webOwn + "/1 < " + webHTTP},
				Sends:    sendsOf(webOwn, webOwn+"/1", webOwn),
			},
		},
		"OwnOfRule": {
			reason:   "A policy for one rule should change the cluster of that rule only.",
			contents: pinned("slow", contents(called("slow", web), at("/too", owned(rule(ours(0, "web", 1)))))), resources: message(nil, "/web", "/too"),
			want: view{
				Clusters: []string{webOwn + " < " + webHTTP, webOwn + "/rule/slow < " + webHTTP},
				Sends:    sendsOf(webOwn+"/rule/slow", webOwn),
			},
		},
		"SwappedTwice": {
			reason: "Two rules with one cluster each may have the same backends with different weights.",
			contents: contents(
				at("/web", owned(rule(ours(0, "web", 9), ours(1, "db", 1)))), at("/too", owned(rule(ours(0, "web", 1), ours(1, "db", 9)))),
			),
			resources: message(nil, "/web", "/too"),
			want: view{
				Clusters: []string{ruleOwn + " < " + ruleOwn, ruleOwn + "/1 < " + ruleOwn + "/1"},
				Sends:    sendsOf(ruleOwn, ruleOwn+"/1"),
			},
		},
	}
}

// TestMovedRulesKeepClusters inserts rules before others, in all orders. The existing rules must
// keep their clusters.
func TestMovedRulesKeepClusters(t *testing.T) {
	contents := func(rules ...ir.Rule) ir.Contents {
		return ir.Contents{
			Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", rules...)}, Targets: targets("web", "db", "new"),
			Pinned: map[ir.RouteKey][]string{routeKey(ir.KindHTTPRoute, "app"): {""}},
		}
	}
	rules := map[string]ir.Rule{
		"/web":    at("/web", rule(ours(0, "web", 1))),
		"/too":    at("/too", rule(ours(0, "web", 1))),
		"/split":  at("/split", rule(ours(0, "web", 9), ours(1, "db", 1))),
		"/mixed":  at("/mixed", rule(svc(0, 1), ours(1, "db", 1))),
		"/sticky": at("/sticky", owned(rule(ours(0, "db", 1), ours(1, "web", 1)))),
	}
	existing := []string{"/web", "/too", "/split", "/mixed", "/sticky"}
	all := map[string]ir.Rule{
		"/new":  at("/new", rule(ours(0, "new", 1))),
		"/also": at("/also", rule(ours(0, "web", 1))),
		"/both": at("/both", rule(ours(0, "new", 1), ours(1, "web", 1))),
	}
	for path, r := range rules {
		all[path] = r
	}
	run := func(paths []string) (map[string]string, map[string]string) {
		var rs []ir.Rule
		for _, p := range paths {
			rs = append(rs, all[p])
		}
		out, _ := Translate(ir.NewSnapshot(contents(rs...)), testSource, message(nil, paths...))
		sends, clusters := map[string]string{}, map[string]string{}
		for i, r := range out.Routes[0].GetVirtualHosts()[0].GetRoutes() {
			sends[paths[i]] = actionView(r.GetRoute())
		}
		for i, b := range marshalAll(t, out.Clusters) {
			clusters[out.Clusters[i].GetName()] = b
		}
		return sends, clusters
	}
	previousSends, previousClusters := run(existing)
	for _, n := range []string{"/new", "/also", "/both"} {
		for i := range len(existing) + 1 {
			updatedSends, updatedClusters := run(slices.Insert(slices.Clone(existing), i, n))
			for _, p := range existing {
				if p == "/mixed" {
					// Envoy Gateway names the clusters of Services.
					continue
				}
				if diff := cmp.Diff(previousSends[p], updatedSends[p]); diff != "" {
					t.Errorf("%s inserted at %d: rule %s: -want, +got:\n%s", n, i, p, diff)
				}
			}
			for name, b := range previousClusters {
				if _, _, plain := parseRule(name); !plain && updatedClusters[name] != b {
					t.Errorf("%s inserted at %d: cluster %s changes", n, i, name)
				}
			}
		}
	}
}

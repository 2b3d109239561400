// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// elsewhereHTTP is the endpoint list of the Service plain in other clusters.
const elsewhereHTTP = "tailscale/failover/default/plain/8080/http"

var failoverGateway = nn("default", "gw")

// failing returns a route whose Services fail over at a Gateway.
func failing(r *ir.Route, gateways ...types.NamespacedName) *ir.Route {
	r.Gateways, r.Failover = gateways, gateways
	return r
}

// shared returns the targets of the Service plain in other clusters.
func shared(change ...func(t *ir.Target)) []*ir.Target {
	var out []*ir.Target
	for _, p := range []ir.Protocol{ir.ProtocolHTTP, ir.ProtocolTCP} {
		t := &ir.Target{
			Key:   ir.TargetKey{Kind: ir.TargetFailover, Namespace: "default", Name: "plain", Port: 8080, Protocol: p},
			Shape: ir.Shape{HealthThreshold: 70},
		}
		for _, fn := range change {
			fn(t)
		}
		out = append(out, t)
	}
	return out
}

// failoverResources returns a message of the Gateway with one HTTP rule.
func failoverResources(clusters []*clusterv3.Cluster, sends ...string) Resources {
	return Resources{Gateways: []types.NamespacedName{failoverGateway}, Clusters: clusters, Routes: egRoutes(egRoute(match0, prefix("/"), to(sends...)))}
}

func failoverCases() map[string]translateCase {
	const tcp = "tcproute/default/db/rule/-1"
	web := failing(route(ir.KindHTTPRoute, "app", rule(svc(0, 1))), failoverGateway)
	single := failoverResources(egClusters(rule0), rule0)
	echoed := view{Clusters: []string{rule0}, Sends: []string{match0 + " > " + rule0}}
	additions := []string{aggregatePrefix + rule0, elsewherePrefix + rule0 + " < " + elsewhereHTTP}
	return map[string]translateCase{
		"Failover": {
			reason:    "A Service that other clusters share should keep its cluster, which an aggregate has first.",
			contents:  ir.Contents{Routes: []*ir.Route{web}, Targets: shared()},
			resources: single,
			want:      view{Clusters: append([]string{rule0}, additions...), Sends: []string{match0 + " > " + aggregatePrefix + rule0}},
		},
		"FailoverElsewhere": {
			reason:    "A Gateway without failover should stay as it is, even if the route fails over at another one.",
			contents:  ir.Contents{Routes: []*ir.Route{failing(route(ir.KindHTTPRoute, "app", rule(svc(0, 1))), nn("default", "another"))}, Targets: shared()},
			resources: single,
			want:      echoed,
		},
		"FailoverNotShared": {
			reason:    "A Service that no other cluster shares should stay as it is.",
			contents:  ir.Contents{Routes: []*ir.Route{web}, Targets: missing(shared())},
			resources: single,
			want:      echoed,
		},
		"FailoverPatched": {
			reason:    "A rule whose cluster is not Envoy Gateway's should stay as it is.",
			contents:  ir.Contents{Routes: []*ir.Route{web}, Targets: shared()},
			resources: failoverResources(egClusters("patched"), "patched"),
			want:      view{Clusters: []string{"patched"}, Sends: []string{match0 + " > patched"}},
		},
		"FailoverPooled": {
			reason:    "Nothing distinguishes the endpoints of several backends in one cluster, so it should stay as it is.",
			contents:  ir.Contents{Routes: []*ir.Route{failing(route(ir.KindHTTPRoute, "app", rule(svc(0, 1), other(1, 1))), failoverGateway)}, Targets: shared()},
			resources: single,
			want:      echoed,
		},
		"FailoverPerBackend": {
			reason:    "A backend with its own cluster should fail over, whatever others there are.",
			contents:  ir.Contents{Routes: []*ir.Route{failing(route(ir.KindHTTPRoute, "app", rule(svc(0, 7), other(1, 3))), failoverGateway)}, Targets: shared()},
			resources: failoverResources(egClusters(rule0+"/backend/0", rule0+"/backend/1"), rule0+"/backend/0=7", rule0+"/backend/1=3"),
			want: view{
				Clusters: []string{rule0 + "/backend/0", rule0 + "/backend/1", aggregatePrefix + rule0 + "/backend/0", elsewherePrefix + rule0 + "/backend/0 < " + elsewhereHTTP},
				Sends:    []string{match0 + " > " + aggregatePrefix + rule0 + "/backend/0=7 " + rule0 + "/backend/1=3 else INTERNAL_SERVER_ERROR"},
			},
		},
		"FailoverMerged": {
			reason:    "A cluster that rules share, by mergeBackends of an EnvoyProxy, should fail over once.",
			contents:  ir.Contents{Routes: []*ir.Route{web}, Targets: shared()},
			resources: failoverResources(egClusters("service/default/plain/8080"), "service/default/plain/8080"),
			want: view{
				Clusters: []string{"service/default/plain/8080", aggregatePrefix + "service/default/plain/8080", elsewherePrefix + "service/default/plain/8080 < " + elsewhereHTTP},
				Sends:    []string{match0 + " > " + aggregatePrefix + "service/default/plain/8080"},
			},
		},
		"FailoverNotPermitted": {
			reason: "A Service of another namespace should need a grant.",
			contents: ir.Contents{
				Routes:  []*ir.Route{failing(route(ir.KindHTTPRoute, "app", rule(ir.BackendRef{Kind: ir.BackendService, NamespacedName: nn("secret", "plain"), Port: 8080, Weight: 1})), failoverGateway)},
				Targets: []*ir.Target{{Key: ir.TargetKey{Kind: ir.TargetFailover, Namespace: "secret", Name: "plain", Port: 8080, Protocol: ir.ProtocolHTTP}}},
			},
			resources: single,
			want:      echoed,
		},
		"FailoverTCP": {
			reason:    "A TCPRoute should fail over, too.",
			contents:  ir.Contents{Routes: []*ir.Route{failing(route(ir.KindTCPRoute, "db", rule(svc(0, 1))), failoverGateway)}, Targets: shared()},
			resources: Resources{Gateways: []types.NamespacedName{failoverGateway}, Listeners: []*listenerv3.Listener{egTCP("tcproute/default/db", tcp)}, Clusters: egClusters(tcp)},
			want: view{
				Clusters: []string{tcp, aggregatePrefix + tcp, elsewherePrefix + tcp + " < tailscale/failover/default/plain/8080/tcp"},
				Sends:    []string{"tcproute/default/db > " + aggregatePrefix + tcp},
			},
		},
	}
}

// TestFailoverClusters checks the clusters of a Service that fails over.
func TestFailoverClusters(t *testing.T) {
	socket := &corev3.TransportSocket{Name: "tls"}
	local := egCluster(rule0, func(c *clusterv3.Cluster) {
		c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{Value: 7}
		c.TransportSocketMatches = []*clusterv3.Cluster_TransportSocketMatch{{Name: rule0 + "/tls/0", TransportSocket: socket}}
		c.AltStatName = "alt"
	})
	cases := map[string]struct {
		reason string
		change func(t *ir.Target)
		want   []string
	}{
		"Serves": {reason: "This cluster should come first.", change: func(*ir.Target) {}, want: []string{rule0, elsewherePrefix + rule0}},
		"Drains": {reason: "While the service drains, it should come last.", change: func(t *ir.Target) { t.Drains = true }, want: []string{elsewherePrefix + rule0, rule0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := ir.NewSnapshot(ir.Contents{Routes: []*ir.Route{failing(route(ir.KindHTTPRoute, "app", rule(svc(0, 1))), failoverGateway)}, Targets: shared(tc.change)})
			out, summary := Translate(s, testSource, failoverResources([]*clusterv3.Cluster{proto.CloneOf(local)}, rule0))
			if len(out.Clusters) != 3 || summary.FailingOver != 1 {
				t.Fatalf("\n%s\nTranslate(...): want three clusters, one of which fails over, got %d and %d", tc.reason, len(out.Clusters), summary.FailingOver)
			}
			if !proto.Equal(local, out.Clusters[0]) {
				t.Errorf("\n%s\nTranslate(...): Envoy Gateway's cluster has changed", tc.reason)
			}
			aggregate, elsewhere := out.Clusters[1], out.Clusters[2]
			config := &aggregatev3.ClusterConfig{}
			if err := aggregate.GetClusterType().GetTypedConfig().UnmarshalTo(config); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, config.GetClusters()); diff != "" {
				t.Errorf("\n%s\nclusters of the aggregate: -want, +got:\n%s", tc.reason, diff)
			}
			if aggregate.GetCommonLbConfig().GetHealthyPanicThreshold().GetValue() != 7 {
				t.Errorf("\n%s\nthe aggregate has another panic threshold", tc.reason)
			}
			if !proto.Equal(elsewhere.GetTransportSocket(), socket) || len(elsewhere.GetTransportSocketMatches()) > 0 || elsewhere.GetAltStatName() != "" {
				t.Errorf("\n%s\nthe cluster for other clusters does not speak the TLS of the backend, or has the statistics of the first", tc.reason)
			}
		})
	}
}

// stripFailover returns the names of a message without the prefix of aggregates, in its text.
func stripFailover(s string) string { return strings.ReplaceAll(s, aggregatePrefix, "") }

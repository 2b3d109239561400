// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"crypto/x509"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// mergedMessage returns the resources that Envoy Gateway makes of a route that is attached to several
// merged Gateways.
func mergedMessage(gateways ...string) Resources {
	out := Resources{Clusters: []*clusterv3.Cluster{egCluster(rule0)}}
	for _, g := range gateways {
		out.Routes = append(out.Routes, &routev3.RouteConfiguration{Name: "default/" + g + "/http", VirtualHosts: []*routev3.VirtualHost{{
			Name: "default/" + g + "/http/*", Domains: []string{"*"}, Metadata: ofResource("Gateway", g, "http"),
			Routes: []*routev3.Route{egRoute(match0, prefix("/"), to(rule0))},
		}}})
	}
	return out
}

// l4 returns an L4 route of Gateways in the namespace default.
func l4(kind ir.RouteKind, name string, gateways ...string) *ir.Route {
	r := route(kind, name, rule(ours(0, "web", 1)))
	r.Gateways = nil
	for _, g := range gateways {
		r.Gateways = append(r.Gateways, nn("default", g))
	}
	return r
}

// TestMergedCertificates checks that the requests of each of several merged Gateways present the
// certificate of their Gateway, and no other.
func TestMergedCertificates(t *testing.T) {
	const (
		web    = "tailscale/services/default/web/80/http"
		tcp    = "tailscale/services/default/web/80/tcp"
		tls    = "tlsroute/default/sni"
		refuse = " refused"
	)
	clusterOf := func(gateway, cluster, presents string) string {
		return "tailscale/gateway/" + gateway + "/" + cluster + " presents " + presents
	}
	certificates := map[types.NamespacedName]*ir.ClientCertificate{
		nn("default", "first"): {Secret: nn("default", "first")}, nn("default", "second"): {Secret: nn("default", "second")},
		nn("default", "broken"): {Secret: nn("default", "first"), Problem: "not permitted"},
	}
	chain := func(names ...string) *listenerv3.Listener {
		out := egTCP(names[0], names[0]+"/rule/-1")
		out.Name = "default/first/tls"
		for _, n := range names[1:] {
			out.FilterChains = append(out.FilterChains, egTCP(n, n+"/rule/-1").FilterChains...)
		}
		return out
	}
	cases := map[string]struct {
		reason    string
		resources func() Resources
		routes    []*ir.Route
		gateways  []types.NamespacedName
		wantSends []string
	}{
		"Each": {
			reason:    "Each Gateway's requests should present its own certificate, although its route leads to the same backend.",
			resources: func() Resources { return mergedMessage("first", "second") },
			wantSends: []string{
				"first > " + clusterOf("default/first", "services/default/web/80/http", "first"), "second > " + clusterOf("default/second", "services/default/web/80/http", "second"),
			},
		},
		"Without": {
			reason:    "A Gateway without a certificate should present none.",
			resources: func() Resources { return mergedMessage("first", "plain") },
			wantSends: []string{"first > " + clusterOf("default/first", "services/default/web/80/http", "first"), "plain > " + web},
		},
		"NoRevision": {
			reason:    "A Gateway should present no certificate of another only because it has no revision yet.",
			resources: func() Resources { return mergedMessage("first", "plain") },
			gateways:  []types.NamespacedName{nn("default", "first")},
			wantSends: []string{"first > " + clusterOf("default/first", "services/default/web/80/http", "first"), "plain > " + web},
		},
		"Problem": {
			reason:    "A Gateway that may not use a certificate should present none, although another uses the same one, and send nothing.",
			resources: func() Resources { return mergedMessage("broken", "first") },
			wantSends: []string{"broken > tailscale/gateway/default/broken/services/default/web/80/http" + refuse, "first > " + clusterOf("default/first", "services/default/web/80/http", "first")},
		},
		"TLSRoute": {
			reason: "Connections of a TLSRoute should present the certificate of the route's Gateway, whatever the listener is called.",
			resources: func() Resources {
				r := mergedMessage("first", "second")
				r.Clusters = append(r.Clusters, egCluster(tls+"/rule/-1"), egCluster("tlsroute/default/plain/rule/-1"))
				r.Listeners = []*listenerv3.Listener{chain(tls, "tlsroute/default/plain")}
				return r
			},
			routes:   []*ir.Route{l4(ir.KindTLSRoute, "sni", "second"), l4(ir.KindTLSRoute, "plain", "plain", "elsewhere")},
			gateways: []types.NamespacedName{nn("default", "plain")},
			wantSends: []string{
				"first > " + clusterOf("default/first", "services/default/web/80/http", "first"), "second > " + clusterOf("default/second", "services/default/web/80/http", "second"),
				tls + " > " + clusterOf("default/second", "services/default/web/80/tcp", "second"), "tlsroute/default/plain > " + tcp,
			},
		},
		"Unclear": {
			reason: "Connections that may be those of one Gateway or another should present no certificate, and go nowhere.",
			resources: func() Resources {
				r := mergedMessage("first", "second")
				r.Clusters = append(r.Clusters, egCluster(tls+"/rule/-1"), egCluster("tlsroute/default/plain/rule/-1"))
				r.Listeners = []*listenerv3.Listener{chain(tls, "tlsroute/default/plain")}
				return r
			},
			routes: []*ir.Route{l4(ir.KindTLSRoute, "sni", "first", "second")},
			wantSends: []string{
				"first > " + clusterOf("default/first", "services/default/web/80/http", "first"), "second > " + clusterOf("default/second", "services/default/web/80/http", "second"),
				tls + " > tailscale/gateway/_/_/services/default/web/80/tcp" + refuse, "tlsroute/default/plain > tlsroute/default/plain/rule/-1",
			},
		},
		"TCPRoute": {
			reason: "A TCP listener belongs to one Gateway, so its connections should present that Gateway's certificate.",
			resources: func() Resources {
				r := mergedMessage("first", "second")
				r.Clusters = append(r.Clusters, egCluster("tcproute/default/app/rule/-1"))
				r.Listeners = []*listenerv3.Listener{chain("tcproute/default/app")}
				return r
			},
			routes: []*ir.Route{l4(ir.KindTCPRoute, "app", "first", "second")},
			wantSends: []string{
				"first > " + clusterOf("default/first", "services/default/web/80/http", "first"), "second > " + clusterOf("default/second", "services/default/web/80/http", "second"),
				"tcproute/default/app > " + clusterOf("default/first", "services/default/web/80/tcp", "first"),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pair := ir.NewKeyPair([]byte("chain"), []byte("key"), &x509.Certificate{})
			s := ir.NewSnapshot(ir.Contents{
				Routes: append([]*ir.Route{route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1)))}, tc.routes...), Targets: speakTLS(targets("web")),
				Certificates: certificates, KeyPairs: map[types.NamespacedName]*ir.KeyPair{nn("default", "first"): pair, nn("default", "second"): pair},
			})
			resources := tc.resources()
			resources.Gateways = tc.gateways
			out, _ := Translate(s, testSource, resources)
			if diff := cmp.Diff(tc.wantSends, presentedTo(t, out)); diff != "" {
				t.Errorf("\n%s\nTranslate(...): -want, +got:\n%s", tc.reason, diff)
			}
			if err := validate(out); err != nil {
				t.Errorf("\n%s\nTranslate(...): Envoy Gateway would refuse it: %v", tc.reason, err)
			}
			first, second := marshal(t, out), clone(out)
			second.Gateways = tc.gateways
			second, _ = Translate(s, testSource, second)
			if diff := cmp.Diff(first, marshal(t, second)); diff != "" {
				t.Errorf("\n%s\nTranslate(Translate(...)): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// presentedTo returns the cluster to which each Gateway and each filter chain sends, and the
// certificate that the cluster presents.
func presentedTo(t *testing.T, r Resources) []string {
	t.Helper()
	show := func(name string) string {
		i := slices.IndexFunc(r.Clusters, func(c *clusterv3.Cluster) bool { return c.GetName() == name })
		if i < 0 {
			t.Fatalf("there is no cluster %s", name)
		}
		switch p := presented(t, r.Clusters[i]); {
		case r.Clusters[i].GetType() == clusterv3.Cluster_STATIC:
			return name + " refused"
		case p != "":
			return name + " presents " + p[len("tailscale/client-certificate/default/"):]
		}
		return name
	}
	var out []string
	renameClusters(Resources{Routes: r.Routes, Listeners: cloneListeners(r.Listeners)}, func(origin sender, cluster string) string {
		label := origin.gateway.Name
		if origin.chain != nil {
			label = origin.chain.GetName()
		}
		out = append(out, label+" > "+show(cluster))
		return cluster
	})
	return out
}

func cloneListeners(listeners []*listenerv3.Listener) []*listenerv3.Listener {
	out := make([]*listenerv3.Listener, 0, len(listeners))
	for _, l := range listeners {
		out = append(out, proto.CloneOf(l))
	}
	return out
}

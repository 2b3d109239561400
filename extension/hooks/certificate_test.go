// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"crypto/x509"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// presents returns a rule that presents the certificate of a Secret to the backends of the route,
// or to the given ones.
func presents(name, secret string, backends ...ir.BackendRef) *ir.PolicyRule {
	return &ir.PolicyRule{Name: name, Backends: backends, Certificate: &ir.ClientCertificate{Secret: nn("default", secret)}}
}

// speakTLS makes targets speak TLS.
func speakTLS(ts []*ir.Target) []*ir.Target {
	for _, t := range ts {
		t.Shape.TLS = &ir.UpstreamTLS{ServerName: "web.example.com"}
	}
	return ts
}

// TestCertificates checks that exactly the selected rules present their certificate, and that a
// rule without a usable certificate sends nothing.
func TestCertificates(t *testing.T) {
	const (
		at         = "tailscale/policy/default/p/a/0/" + match0 + ": "
		presenting = "tailscale/policy/client-certificate/default/client/"
		web        = "tailscale/services/default/web/80/http"
		plain      = match0 + ": " + web
		secret     = "tailscale/client-certificate/default/client"
	)
	pair := ir.NewKeyPair([]byte("chain"), []byte("key"), &x509.Certificate{})
	whole := func(r *ir.PolicyRule) []*ir.RoutePolicy {
		return []*ir.RoutePolicy{policy("p", toRoute(""), r)}
	}
	narrow := presents("a", "client")
	narrow.Matches = []ir.PolicyMatch{under("/x")}
	broken := presents("a", "client")
	broken.Certificate.Problem = "expired"
	type want struct {
		Routes, Clusters []string
		// Presented maps a cluster to the secret that it presents.
		Presented map[string]string
		Secrets   []string
	}
	cases := map[string]struct {
		reason  string
		rules   []ir.Rule
		targets []*ir.Target
		rule    *ir.PolicyRule
		want    want
	}{
		"Route": {
			reason: "The rule should present the certificate to the route's backends through a separate cluster.",
			rules:  []ir.Rule{rule(ours(0, "web", 1))}, targets: speakTLS(targets("web")), rule: narrow,
			want: want{
				Routes:    []string{at + presenting + "services/default/web/80/http", plain},
				Clusters:  []string{web, presenting + "services/default/web/80/http"},
				Presented: map[string]string{presenting + "services/default/web/80/http": secret},
				Secrets:   []string{"default/listener", secret},
			},
		},
		"OtherBackends": {
			reason: "The rule should present the certificate to its backends, and no cluster without it should be added.",
			rules:  []ir.Rule{rule(ours(0, "web", 1))}, targets: speakTLS(targets("web", "api")),
			rule: presents("a", "client", ours(0, "api", 3), ours(1, "gone", 1)),
			want: want{
				Routes:    []string{at + presenting + "policy/services/default/api/80/http=3 invalid-backend-cluster=1 else INTERNAL_SERVER_ERROR", plain},
				Clusters:  []string{web, presenting + "policy/services/default/api/80/http"},
				Presented: map[string]string{presenting + "policy/services/default/api/80/http": secret},
				Secrets:   []string{"default/listener", secret},
			},
		},
		"Problem": {
			reason: "A rule without its certificate should send nothing.",
			rules:  []ir.Rule{rule(ours(0, "web", 1))}, targets: speakTLS(targets("web")), rule: broken,
			want: want{Routes: []string{at + "503", plain}, Clusters: []string{web}, Secrets: []string{"default/listener"}},
		},
		"UnknownSecret": {
			reason: "A rule without the certificate's key should send nothing.",
			rules:  []ir.Rule{rule(ours(0, "web", 1))}, targets: speakTLS(targets("web")), rule: presents("a", "other"),
			want: want{Routes: []string{at + "503", plain}, Clusters: []string{web}, Secrets: []string{"default/listener"}},
		},
		"NoTLS": {
			reason: "Backends without TLS should get no requests.",
			rules:  []ir.Rule{rule(ours(0, "web", 1))}, targets: targets("web"), rule: presents("a", "client"),
			want: want{Routes: []string{at + "503", plain}, Clusters: []string{web}, Secrets: []string{"default/listener"}},
		},
		"NotOurs": {
			reason: "Backends that Envoy Gateway resolves should get no requests.",
			rules:  []ir.Rule{rule(svc(0, 1))}, rule: presents("a", "client"),
			want: want{Routes: []string{at + "503", match0 + ": " + rule0}, Clusters: []string{rule0}, Secrets: []string{"default/listener"}},
		},
		"Split": {
			reason: "Envoy should answer the share of requests for other backends.",
			rules:  []ir.Rule{rule(ours(0, "web", 3), svc(1, 1))}, targets: speakTLS(targets("web")), rule: presents("a", "client"),
			want: want{
				Routes:    []string{at + "invalid-backend-cluster=1 " + presenting + "services/default/web/80/http=3", match0 + ": " + rule0 + "=1 " + web + "=3"},
				Clusters:  []string{rule0, web, presenting + "services/default/web/80/http"},
				Presented: map[string]string{presenting + "services/default/web/80/http": secret},
				Secrets:   []string{"default/listener", secret},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := ir.NewSnapshot(ir.Contents{
				Routes: []*ir.Route{route(ir.KindHTTPRoute, "app", tc.rules...)}, Targets: tc.targets, Policies: whole(tc.rule),
				KeyPairs: map[types.NamespacedName]*ir.KeyPair{nn("default", "client"): pair},
			})
			resources := policed()
			resources.Secrets = []*tlsv3.Secret{{Name: "default/listener"}}
			out, _ := Translate(s, testSource, resources)
			got := want{}
			for _, r := range out.Routes[0].GetVirtualHosts()[0].GetRoutes() {
				got.Routes = append(got.Routes, r.GetName()+": "+describeRoute(r))
			}
			for _, c := range out.Clusters {
				got.Clusters = append(got.Clusters, c.GetName())
				if n := presented(t, c); n != "" {
					if got.Presented == nil {
						got.Presented = map[string]string{}
					}
					got.Presented[c.GetName()] = n
				}
			}
			for _, entry := range out.Secrets {
				got.Secrets = append(got.Secrets, entry.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nTranslate(...): -want, +got:\n%s", tc.reason, diff)
			}
			if err := validate(out); err != nil {
				t.Errorf("\n%s\nTranslate(...): Envoy Gateway would refuse it: %v", tc.reason, err)
			}
			first := marshal(t, out)
			second, _ := Translate(s, testSource, clone(out))
			if diff := cmp.Diff(first, marshal(t, second)); diff != "" {
				t.Errorf("\n%s\nTranslate(Translate(...)): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// presented returns the secret that a cluster presents.
func presented(t *testing.T, c *clusterv3.Cluster) string {
	t.Helper()
	if c.GetTransportSocket() == nil {
		return ""
	}
	tlsContext := &tlsv3.UpstreamTlsContext{}
	if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(tlsContext); err != nil {
		t.Fatal(err)
	}
	for _, n := range tlsContext.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs() {
		return n.GetName()
	}
	return ""
}

// TestGatewayCertificates checks that the extension's clusters with TLS present the Gateway's
// certificate, unless a policy selects another, and that they have no endpoints while the
// certificate cannot be presented.
func TestGatewayCertificates(t *testing.T) {
	const (
		web        = "tailscale/services/default/web/80/http"
		plain      = "tailscale/services/default/plain/80/http"
		tcp        = "tailscale/services/default/web/80/tcp"
		presenting = "tailscale/policy/client-certificate/default/client/services/default/web/80/http"
		secret     = "tailscale/client-certificate/default/gateway"
		own        = "tailscale/client-certificate/default/client"
		ofWeb      = "tailscale/gateway/default/gw/services/default/web/80/http"
		ofTCP      = "tailscale/gateway/default/gw/services/default/web/80/tcp"
	)
	gateway := &ir.ClientCertificate{Secret: nn("default", "gateway")}
	broken := &ir.ClientCertificate{Secret: nn("default", "gateway"), Problem: "expired"}
	narrow := presents("a", "client")
	narrow.Matches = []ir.PolicyMatch{under("/x")}
	type want struct {
		// Presented maps a cluster to the secret that it presents, and Refused lists the clusters
		// without endpoints.
		Presented map[string]string
		Refused   []string
		Secrets   []string
	}
	cases := map[string]struct {
		reason       string
		certificates map[types.NamespacedName]*ir.ClientCertificate
		gateways     []types.NamespacedName
		merges       bool
		want         want
	}{
		"None":  {reason: "Without a Gateway certificate only the rule's should be presented.", want: want{Presented: map[string]string{presenting: own}, Secrets: []string{own}}},
		"Other": {reason: "The certificate of another Gateway should not be presented.", certificates: map[types.NamespacedName]*ir.ClientCertificate{nn("default", "other"): gateway}, want: want{Presented: map[string]string{presenting: own}, Secrets: []string{own}}},
		"Gateway": {
			reason:       "Clusters should present the Gateway's certificate, and the rule's own where it has one.",
			certificates: map[types.NamespacedName]*ir.ClientCertificate{nn("default", "gw"): gateway},
			want:         want{Presented: map[string]string{web: secret, tcp: secret, presenting: own}, Secrets: []string{own, secret}},
		},
		"Problem": {
			reason:       "Without a usable certificate TLS backends should get no requests, except from a rule with its own.",
			certificates: map[types.NamespacedName]*ir.ClientCertificate{nn("default", "gw"): broken},
			want:         want{Presented: map[string]string{presenting: own}, Refused: []string{web, tcp}, Secrets: []string{own}},
		},
		"Merged": {
			reason:       "With merged Gateways, the requests of each should have separate clusters, even if all present the same certificate.",
			certificates: map[types.NamespacedName]*ir.ClientCertificate{nn("default", "gw"): gateway, nn("default", "other"): gateway},
			gateways:     []types.NamespacedName{nn("default", "gw"), nn("default", "other")},
			want:         want{Presented: map[string]string{ofWeb: secret, ofTCP: secret, presenting: own}, Secrets: []string{own, secret}},
		},
		"MergedAndNot": {
			reason:       "The certificate of a merged Gateway should not change the clusters of another.",
			certificates: map[types.NamespacedName]*ir.ClientCertificate{nn("default", "other"): gateway},
			gateways:     []types.NamespacedName{nn("default", "gw"), nn("default", "other")},
			want:         want{Presented: map[string]string{presenting: own}, Secrets: []string{own}},
		},
		"MergedAlone": {
			reason:       "The clusters of a Gateway whose class merges Gateways should not change their names when there is a second one.",
			certificates: map[types.NamespacedName]*ir.ClientCertificate{nn("default", "gw"): gateway},
			merges:       true,
			want:         want{Presented: map[string]string{ofWeb: secret, ofTCP: secret, presenting: own}, Secrets: []string{own, secret}},
		},
		"MergedProblem": {
			reason:       "A merged Gateway whose certificate cannot be presented should not reach backends that speak TLS.",
			certificates: map[types.NamespacedName]*ir.ClientCertificate{nn("default", "gw"): broken},
			gateways:     []types.NamespacedName{nn("default", "gw"), nn("default", "other")},
			want:         want{Presented: map[string]string{presenting: own}, Refused: []string{ofWeb, ofTCP}, Secrets: []string{own}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ts := append(speakTLS(targets("web")), targets("plain")...)
			pair := ir.NewKeyPair([]byte("chain"), []byte("key"), &x509.Certificate{})
			s := ir.NewSnapshot(ir.Contents{
				Routes: []*ir.Route{
					route(ir.KindHTTPRoute, "app", rule(ours(0, "web", 1), ours(1, "plain", 1))), route(ir.KindTCPRoute, "app", rule(ours(0, "web", 1))),
				},
				Targets: ts, Policies: []*ir.RoutePolicy{policy("p", toRoute(""), narrow)}, Certificates: tc.certificates,
				Bootstraps: map[types.NamespacedName]ir.Bootstrap{nn("default", "gw"): {Merges: tc.merges}},
				KeyPairs:   map[types.NamespacedName]*ir.KeyPair{nn("default", "client"): pair, nn("default", "gateway"): pair},
			})
			resources := policed()
			resources.Clusters = append(resources.Clusters, egCluster("tcproute/default/app/rule/-1"))
			resources.Listeners = append(resources.Listeners, egTCP("tcp", "tcproute/default/app/rule/-1"))
			resources.Gateways = tc.gateways
			out, _ := Translate(s, testSource, resources)
			got := want{Presented: map[string]string{}}
			for _, c := range out.Clusters {
				if n := presented(t, c); n != "" {
					got.Presented[c.GetName()] = n
				}
				if c.GetType() == clusterv3.Cluster_STATIC {
					got.Refused = append(got.Refused, c.GetName())
				}
				if c.GetName() == plain && c.GetTransportSocket() != nil {
					t.Errorf("%s\nthe cluster speaks TLS to a plaintext backend", tc.reason)
				}
			}
			slices.Sort(got.Refused)
			for _, entry := range out.Secrets {
				got.Secrets = append(got.Secrets, entry.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
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

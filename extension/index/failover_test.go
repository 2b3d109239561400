// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// routeToService names a Service and none of our kinds.
const routeToService = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: plain, generation: 1}
spec:
  parentRefs: [{name: gw, namespace: infra}]
  rules:
  - backendRefs: [{name: app, port: 8080}]
`

// failoverOf returns a TailscaleGateway of a namespace that asks for failover at Gateway infra/gw.
func failoverOf(namespace string) string {
	return `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: fails-over, namespace: ` + namespace + `}
spec:
  gatewayRef: {namespace: infra, name: gw}
  failover: {}
`
}

// shareGateways permits TailscaleGateways of namespace shop to share Gateways of namespace infra.
var shareGateways = grantOf("{group: gateway.tailscale.com, kind: TailscaleGateway, namespace: shop}", "{group: gateway.networking.k8s.io, kind: Gateway}")

var (
	gw        = types.NamespacedName{Namespace: "infra", Name: "gw"}
	plainApp  = ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: name("plain")}
	elsewhere = ir.TargetKey{Kind: ir.TargetFailover, Namespace: "shop", Name: "app", Port: 8080, Protocol: ir.ProtocolHTTP}
)

func TestFailover(t *testing.T) {
	edge := []ir.Locality{{
		Name: "web-edge-remote", Remote: true, Priority: ir.PriorityRemote, Weight: 1,
		Endpoints: append(pods(10007, "10.1.0.1"), draining(10007, "10.1.0.3")),
	}}
	shared := []string{failoverOf("infra"), routeToService, servicesWeb, serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge}
	omit := func(objects []string, leftOut string) []string {
		var out []string
		for _, o := range objects {
			if o != leftOut {
				out = append(out, o)
			}
		}
		return out
	}
	replaced := func(old, replacement string) []string {
		return append(omit(shared, old), replacement)
	}
	type want struct {
		// FailsOver reports that the route is known, with its Gateway.
		FailsOver bool

		// Elsewhere reports that other clusters share the Service, at the localities.
		Elsewhere  bool
		Localities []ir.Locality
		Vacant     *ir.VacantPort
		TLS        string
		Drains     bool
	}
	answers := want{FailsOver: true, Elsewhere: true, Localities: edge}
	cases := map[string]struct {
		reason  string
		objects []string
		want    want
	}{
		"Shared": {
			reason:  "A route to a Service that other clusters share should fail over to their proxies.",
			objects: shared, want: answers,
		},
		"NotAsked": {
			reason:  "Without spec.failover the route should not be known, as before.",
			objects: replaced(failoverOf("infra"), strings.ReplaceAll(failoverOf("infra"), "  failover: {}\n", "")),
		},
		"NotPermitted": {
			reason:  "A TailscaleGateway of another namespace should change nothing without a grant.",
			objects: replaced(failoverOf("infra"), failoverOf("shop")),
		},
		"Permitted": {
			reason:  "With a grant it should.",
			objects: append(replaced(failoverOf("infra"), failoverOf("shop")), shareGateways), want: answers,
		},
		"NotShared": {
			reason:  "A Service that no other cluster shares should have no other place.",
			objects: omit(shared, attachmentWeb), want: want{FailsOver: true},
		},
		"NotPublished": {
			reason:  "So should one that no TailscaleServices publishes.",
			objects: omit(shared, servicesWeb), want: want{FailsOver: true},
		},
		"OtherNamespace": {
			reason:  "A TailscaleServices of another namespace should not answer for the Service.",
			objects: replaced(servicesWeb, strings.ReplaceAll(servicesWeb, "name: web}", "name: web, namespace: other}")), want: want{FailsOver: true},
		},
		"OneOfSeveral": {
			reason:  "A port that leads to other backends, too, should not answer for the Service.",
			objects: append(replaced(servicesWeb, services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}, {name: alt, port: 8080}]}`)), serviceAlt, sliceAlt),
			want:    want{FailsOver: true},
		},
		"OtherPort": {
			reason:  "A backend of another port of the Service should not answer.",
			objects: replaced(servicesWeb, services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 9090}]}`)), want: want{FailsOver: true},
		},
		"Namesake": {
			reason:  "A TailscaleServices without backends should publish the Service of its name.",
			objects: append(replaced(servicesWeb, strings.ReplaceAll(services(`{vipService: {ports: ["tcp:80"]}}`), "name: web", "name: app")), strings.ReplaceAll(attachmentWeb, "services: web", "services: app")),
			want:    answers,
		},
		"TLS": {
			reason: "Other clusters that end TLS should be reached with the name in their certificate.",
			objects: append(omit(omit(shared, servicesWeb), attachmentWeb), services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], tls: {}}`),
				strings.ReplaceAll(attachmentWeb, "  ports:", "  dnsName: web.example.ts.net\n  ports:")),
			want: want{FailsOver: true, Elsewhere: true, Localities: edge, TLS: "web.example.ts.net"},
		},
		"Drains": {
			reason:  "While the service drains, other clusters should come first.",
			objects: replaced(attachmentWeb, strings.ReplaceAll(attachmentWeb, "  ports:", "  drain: true\n  ports:")),
			want:    want{FailsOver: true, Elsewhere: true, Localities: edge, Drains: true},
		},
		"Vacant": {
			reason:  "A Service with no ready endpoint should have a vacant port.",
			objects: replaced(sliceApp, strings.ReplaceAll(sliceApp, "ready: true", "ready: false")),
			want:    want{FailsOver: true, Elsewhere: true, Localities: edge, Vacant: &ir.VacantPort{Name: "http"}},
		},
		"Empty": {
			reason:  "So should one without any endpoint.",
			objects: append(omit(omit(shared, sliceApp), serviceApp), strings.Replace(serviceApp, "{ports:", "{ipFamilies: [IPv6], ports:", 1)),
			want:    want{FailsOver: true, Elsewhere: true, Localities: edge, Vacant: &ir.VacantPort{Name: "http", IPv6: true}},
		},
		"NoService": {
			reason:  "A Service that does not exist should have none.",
			objects: omit(omit(shared, sliceApp), serviceApp), want: answers,
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, tc.objects...)
			got := want{}
			if r := s.Route(plainApp); r != nil {
				got.FailsOver = cmp.Equal(r.Failover, []types.NamespacedName{gw})
			}
			if target := s.Target(elsewhere); target != nil && !target.Missing {
				got.Elsewhere, got.Vacant, got.Drains = true, target.Vacant, target.Drains
				got.Localities = target.Localities
				if target.Shape.RemoteTLS != nil {
					got.TLS = target.Shape.RemoteTLS.ServerName
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nfailover: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFailoverComesAndGoes checks that a route is known, whatever comes first, and as long as it fails
// over.
func TestFailoverComesAndGoes(t *testing.T) {
	objects := decode(t, routeToService, failoverOf("infra"))
	s := NewStore()
	for i, o := range objects {
		if s.Snapshot().Route(plainApp) != nil {
			t.Errorf("before object %d: the route is known", i)
		}
		if err := s.Apply(Change{Object: o}); err != nil {
			t.Fatal(err)
		}
	}
	if s.Snapshot().Route(plainApp) == nil {
		t.Error("the route is not known")
	}
	revision := s.Snapshot().Revision
	if err := s.Apply(Change{Object: objects[1], Deleted: true}); err != nil {
		t.Fatal(err)
	}
	if s.Snapshot().Route(plainApp) != nil || s.Snapshot().Revision == revision {
		t.Error("without failover the route is known, or nothing is translated again")
	}
}

// TestVacantRevises checks that a Service that loses its last ready endpoint notifies those that follow
// revisions: an EndpointSlice is due.
func TestVacantRevises(t *testing.T) {
	s := NewStore()
	apply(t, s, false, failoverOf("infra"), routeToService, servicesWeb, serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge)
	changed, end := s.Revised()
	defer end()
	apply(t, s, false, strings.ReplaceAll(sliceApp, "ready: true", "ready: false"))
	select {
	case <-changed:
	default:
		t.Error("no revision")
	}
}

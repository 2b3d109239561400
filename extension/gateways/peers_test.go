// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// madeFor makes of a manifest in shop for web one of another namespace and TailscaleGateway,
// which is as many seconds old as the year 2026.
func madeFor(manifest, namespace, name string, second int) string {
	if strings.Contains(manifest, "gatewayRef") && namespace != "shop" {
		manifest += "---" + sharesGrant(namespace, "shop")
	}
	return strings.NewReplacer(
		"metadata: {name: web}", fmt.Sprintf("metadata: {name: %s, namespace: %s, creationTimestamp: '2026-01-02T03:04:%02dZ'}", name, namespace, second),
		"gatewayRef: {name: web}", "gatewayRef: {name: web, namespace: shop}",
		"  name: web-", fmt.Sprintf("  namespace: %s\n  name: web-", namespace),
		"gateway.tailscale.com/gateway: web", "gateway.tailscale.com/gateway: "+name,
	).Replace(manifest)
}

// sharesGrant lets TailscaleGateways of a namespace share the Gateways of another one.
func sharesGrant(from, to string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: for-%[1]s, namespace: %[2]s}
spec:
  from: [{group: gateway.tailscale.com, kind: TailscaleGateway, namespace: %[1]s}]
  to: [{group: gateway.networking.k8s.io, kind: Gateway}]
`, from, to)
}

// agree has TailscaleGateways plan in turn, each beside the routes that the others have,
// until none changes any. It returns the routes, and what became of what each wants.
func agree(t *testing.T, all, routes []client.Object, in ...types.NamespacedName) ([]client.Object, map[string][]string) {
	t.Helper()
	became := map[string][]string{}
	for range 10 {
		before := routes
		for _, n := range in {
			i := inputFor(t, n, append(append([]client.Object{}, all...), routes...)...)
			p := plan(i)
			became[n.String()] = lines(p.routes)
			kept := ours(t, i, p.routes)
			for _, r := range routes {
				if ownerByLabels(r) != n {
					kept = append(kept, r)
				}
			}
			routes = kept
		}
		if cmp.Diff(byKey(before), byKey(routes)) == "" {
			return routes, became
		}
	}
	t.Fatalf("they do not agree: %v", became)
	return nil, nil
}

// keysOf NAMESPACE/NAME.
func keysOf(of []string) []types.NamespacedName {
	var out []types.NamespacedName
	for _, s := range of {
		ns, name, _ := strings.Cut(s, "/")
		out = append(out, types.NamespacedName{Namespace: ns, Name: name})
	}
	return out
}

func byKey(of []client.Object) map[string]client.Object {
	out := map[string]client.Object{}
	for _, o := range of {
		out[client.ObjectKeyFromObject(o).String()] = o
	}
	return out
}

// TestPeers shows who has a host and a path that several TailscaleGateways of one Gateway
// want, whoever looks first and whoever had it before.
func TestPeers(t *testing.T) {
	const (
		waits    = " Pending Waiting for Envoy Gateway"
		has      = " has nas.tailscale.local/tailscale/nas already, so the "
		noRoute  = " gets no route"
		address  = "Egress nas.tailscale.local/tailscale/nas -> "
		atListen = `{hostPattern: "{service}.example.com", pathPrefix: "/tailscale/{service}/", protocol: HTTPS}`
	)
	egress := joins(discovers("prod", "HTTP", defaultEgress))
	app := routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]")
	cases := map[string]struct {
		reason  string
		objects []string
		want    map[string][]string
	}{
		"Older": {
			reason: "The older one should have it, and the other say who does.",
			objects: []string{
				madeFor(egress, "shop", "web", 9), found("prod", "True", "svc-nas"),
				madeFor(joins(discovers("dev", "HTTP", defaultEgress)), "team", "web", 1), madeFor(found("dev", "True", "nas"), "team", "web", 0),
			},
			want: map[string][]string{
				"shop/web": {address + "- Conflict The device nas of tailnet dev of TailscaleGateway team/web" + has + "service nas of tailnet prod of TailscaleGateway shop/web" + noRoute},
				"team/web": {address + "team/web-dev-nas:80" + waits},
			},
		},
		"OneAge": {
			reason:  "Of one age the first should have it by namespace and name.",
			objects: []string{madeFor(egress, "shop", "web", 1), found("prod", "True", "nas"), madeFor(egress, "team", "web", 1), madeFor(found("prod", "True", "nas"), "team", "web", 0)},
			want: map[string][]string{
				"shop/web": {address + "shop/web-prod-nas:80" + waits},
				"team/web": {address + "- Conflict The device nas of tailnet prod of TailscaleGateway shop/web" + has + "device nas of tailnet prod of TailscaleGateway team/web" + noRoute},
			},
		},
		"NotMade": {
			reason:  "What cannot be made should keep nobody.",
			objects: []string{madeFor(egress, "shop", "web", 1), found("prod", "True", "nas-"), madeFor(egress, "team", "web", 9), madeFor(found("prod", "True", "nas"), "team", "web", 0)},
			want: map[string][]string{
				"shop/web": {address + "- Pending Waiting for proxies to carry traffic to it"},
				"team/web": {address + "team/web-prod-nas:80" + waits},
			},
		},
		"OtherListener": {
			reason: "At another listener there is room for both.",
			objects: []string{
				madeFor(joins(discovers("prod", "HTTP", strings.Replace(atListen, "HTTPS", "HTTP", 1))), "shop", "web", 1), found("prod", "True", "nas"),
				madeFor(joins(discovers("prod", "HTTP", atListen)), "team", "web", 9), madeFor(found("prod", "True", "nas"), "team", "web", 0),
			},
			want: map[string][]string{
				"shop/web": {"Egress nas.example.com/tailscale/nas -> shop/web-prod-nas:80" + waits},
				"team/web": {"Egress nas.example.com/tailscale/nas -> team/web-prod-nas:80" + waits},
			},
		},
		"Person": {
			reason: "Where a person has it, both should give way.",
			objects: []string{
				madeFor(egress, "shop", "web", 1), found("prod", "True", "nas"), madeFor(egress, "team", "web", 9), madeFor(found("prod", "True", "nas"), "team", "web", 0),
				routeTo("HTTPRoute", "shop", "mine", "{name: web}", "True", "hostnames: [nas.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/nas}}]}]"),
			},
			want: map[string][]string{
				"shop/web": {address + "- Conflict HTTPRoute shop/mine" + has + "device nas of tailnet prod" + noRoute},
				"team/web": {address + "- Conflict HTTPRoute shop/mine" + has + "device nas of tailnet prod" + noRoute},
			},
		},
		"Ingress": {
			reason: "So it is with routes to Services.",
			objects: []string{
				madeFor(joins(sharesServices("prod", defaultIngress)), "shop", "web", 1), madeFor(joins(sharesServices("prod", defaultIngress)), "shop", "other", 9), app,
			},
			want: map[string][]string{
				"shop/web":   {"Ingress app.prod.gateway.local/ -> shop/app:80" + waits},
				"shop/other": {"Ingress app.prod.gateway.local/ -> - Conflict Service shop/app for tailnet prod of TailscaleGateway shop/web has app.prod.gateway.local/ already, so Service shop/app for tailnet prod of TailscaleGateway shop/other" + noRoute},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := objects(t, append([]string{gateway}, tc.objects...)...)
			in := keysOf(slices.Sorted(maps.Keys(tc.want)))
			for _, one := range in {
				had, _ := agree(t, all, nil, one)
				for _, order := range [][]types.NamespacedName{in, {in[1], in[0]}} {
					_, got := agree(t, all, had, order...)
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("\n%s\n%s had it, and they look in the order %v: -want, +got:\n%s", tc.reason, one, order, diff)
					}
				}
			}
		})
	}
}

// TestPeersTakeOver shows that a host and a path go to the younger TailscaleGateway when
// the older one's service is gone, and back when it is found again.
func TestPeersTakeOver(t *testing.T) {
	egress := joins(discovers("prod", "HTTP", defaultEgress))
	in := keysOf([]string{"shop/web", "team/web"})
	with := func(services ...string) []client.Object {
		return objects(t, gateway, madeFor(egress, "shop", "web", 1), madeFor(egress, "team", "web", 9), found("prod", "True", services...), madeFor(found("prod", "True", "nas"), "team", "web", 0))
	}
	var routes []client.Object
	for _, step := range []struct {
		services []string
		want     string
	}{
		{services: []string{"nas"}, want: "shop"},
		{want: "team"},
		{services: []string{"nas"}, want: "shop"},
	} {
		routes, _ = agree(t, with(step.services...), routes, in...)
		if len(routes) != 1 || routes[0].GetNamespace() != step.want {
			t.Errorf("with services %v: routes %v, want one in namespace %s", step.services, byKey(routes), step.want)
		}
	}
}

// TestCollides shows that a report tells a collision of services from a route of a
// person's.
func TestCollides(t *testing.T) {
	two := joins(discovers("prod", "HTTP", defaultEgress), discovers("dev", "HTTP", defaultEgress))
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	cases := map[string]struct {
		reason  string
		objects []string
		peers   []string
		want    []bool
	}{
		"Service": {
			reason:  "Another service of the TailscaleGateway.",
			objects: []string{two, found("prod", "True", "nas"), found("dev", "True", "nas")}, want: []bool{true, false},
		},
		"Peer": {
			reason: "A service of another TailscaleGateway.",
			objects: []string{
				madeFor(two, "shop", "web", 9), found("prod", "True", "nas"),
				madeFor(joins(discovers("prod", "HTTP", defaultEgress)), "team", "web", 1), madeFor(found("prod", "True", "nas"), "team", "web", 0),
			},
			peers: []string{"team/web"}, want: []bool{true},
		},
		"Person": {
			reason: "A person's route.",
			objects: []string{
				two, found("prod", "True", "nas"),
				routeTo("HTTPRoute", "shop", "mine", "{name: web}", "True", "hostnames: [nas.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/nas}}]}]"),
			},
			want: []bool{false},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := objects(t, append([]string{gateway}, tc.objects...)...)
			for _, n := range keysOf(tc.peers) {
				routes, _ := agree(t, all, nil, n)
				all = append(all, routes...)
			}
			var got []bool
			for _, r := range plan(inputFor(t, web, all...)).report.GeneratedRoutes {
				got = append(got, r.Collides)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

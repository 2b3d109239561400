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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// manifestFor changes a manifest of TailscaleGateway shop/web to another namespace, name and
// creation time in seconds.
func manifestFor(manifest, namespace, name string, second int) string {
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

// sharesGrant returns a ReferenceGrant that permits TailscaleGateways of a namespace to share
// the Gateways of another one.
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

// converge plans for the TailscaleGateways in turn, each with the routes of the others, until
// no routes change. It returns the routes, and the outcome of each desired route.
func converge(t *testing.T, all, existing []client.Object, keys ...types.NamespacedName) ([]client.Object, map[string][]string) {
	t.Helper()
	outcome := map[string][]string{}
	for range 10 {
		previous := existing
		for _, n := range keys {
			i := inputFor(t, n, append(append([]client.Object{}, all...), existing...)...)
			p := plan(i)
			outcome[n.String()] = lines(p.routes)
			updated := generatedObjects(t, i, p.routes)
			for _, r := range existing {
				if routes.Owner(r) != n {
					updated = append(updated, r)
				}
			}
			existing = updated
		}
		if cmp.Diff(byKey(previous), byKey(existing)) == "" {
			return existing, outcome
		}
	}
	t.Fatalf("the plans do not converge: %v", outcome)
	return nil, nil
}

// keysOf parses NAMESPACE/NAME.
func keysOf(names []string) []types.NamespacedName {
	var out []types.NamespacedName
	for _, s := range names {
		ns, name, _ := strings.Cut(s, "/")
		out = append(out, types.NamespacedName{Namespace: ns, Name: name})
	}
	return out
}

func byKey(objs []client.Object) map[string]client.Object {
	out := map[string]client.Object{}
	for _, o := range objs {
		out[client.ObjectKeyFromObject(o).String()] = o
	}
	return out
}

// TestUngrantedPeer checks that a TailscaleGateway that may not share the Gateway takes no host and
// path, whatever routes are labelled as its own.
func TestUngrantedPeer(t *testing.T) {
	egress := joins(discovers("prod", "HTTP", defaultEgress))
	theirs := types.NamespacedName{Namespace: "team", Name: "web"}
	all := objects(t, gateway, manifestFor(egress, "shop", "web", 9), found("prod", "True", "nas"), manifestFor(egress, "team", "web", 1), manifestFor(found("prod", "True", "nas"), "team", "web", 0))
	granted := inputFor(t, theirs, all...)
	existing := generatedObjects(t, granted, plan(granted).routes)
	inputs := inputFor(t, types.NamespacedName{Namespace: "shop", Name: "web"}, append(existing, all...)...)
	ls := routes.Listeners(inputs.Gateway, inputs.Sets)
	if got := len(inputs.Preceding(ls)); got != 1 {
		t.Fatalf("with a grant: want the route of the older TailscaleGateway first, got %d", got)
	}
	inputs.Grants = refgrant.Grants{}
	if got := inputs.Preceding(ls); len(got) != 0 {
		t.Errorf("without a grant: want no route first, got %v", got)
	}
}

// TestRefusedTailnet checks that a TailscaleGateway whose tailnet does not allow its namespace
// generates no routes, and that its routes take no place.
func TestRefusedTailnet(t *testing.T) {
	egress := joins(discovers("prod", "HTTP", defaultEgress))
	theirs := types.NamespacedName{Namespace: "team", Name: "web"}
	all := objects(t, gateway, manifestFor(egress, "shop", "web", 9), found("prod", "True", "nas"), manifestFor(egress, "team", "web", 1), manifestFor(found("prod", "True", "nas"), "team", "web", 0))
	allowed := inputFor(t, theirs, all...)
	existing := generatedObjects(t, allowed, plan(allowed).routes)
	if len(existing) != 1 {
		t.Fatalf("want a route where the tailnet allows the namespace, got %v", existing)
	}
	refuse := func(o *gatewayv1alpha1.TailscaleGateway) {
		o.Status.SetConditions(xpv2.Condition{Type: meta.TypeTailnetsValid, Status: corev1.ConditionFalse, Reason: meta.ReasonNamespaceNotAllowed})
		o.Status.DependencyStatus = []gatewayv1alpha1.DependencyStatus{{Kind: gatewayv1alpha1.TailscaleTailnetKind, Name: "prod"}}
	}
	previous := allowed.Object.DeepCopy()
	refuse(allowed.Object)
	if got := plan(allowed).routes; len(got) != 0 {
		t.Errorf("want no route where the tailnet does not allow the namespace, got %v", got)
	}
	if same(previous, allowed.Object) {
		t.Error("a tailnet that refuses the namespace is a change")
	}

	inputs := inputFor(t, types.NamespacedName{Namespace: "shop", Name: "web"}, append(existing, all...)...)
	for _, p := range inputs.Peers {
		if p.Namespace == theirs.Namespace {
			refuse(p)
		}
	}
	if got := inputs.Preceding(routes.Listeners(inputs.Gateway, inputs.Sets)); len(got) != 0 {
		t.Errorf("want no route first, got %v", got)
	}
}

// TestPeers checks which of several TailscaleGateways of one Gateway gets a host and a path,
// independent of the order of planning and of existing routes.
func TestPeers(t *testing.T) {
	const (
		waits    = " Pending Waiting for Envoy Gateway"
		conflict = " has nas.tailscale.local/tailscale/nas already; no route is generated for the "
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
			reason: "The older TailscaleGateway gets the address, and the message of the other names it.",
			objects: []string{
				manifestFor(egress, "shop", "web", 9), found("prod", "True", "svc-nas"),
				manifestFor(joins(discovers("dev", "HTTP", defaultEgress)), "team", "web", 1), manifestFor(found("dev", "True", "nas"), "team", "web", 0),
			},
			want: map[string][]string{
				"shop/web": {address + "- Conflict The device nas of tailnet dev of TailscaleGateway team/web" + conflict + "service nas of tailnet prod of TailscaleGateway shop/web"},
				"team/web": {address + "team/web-dev-nas:80" + waits},
			},
		},
		"OneAge": {
			reason:  "Of the same age, the first by namespace and name gets the address.",
			objects: []string{manifestFor(egress, "shop", "web", 1), found("prod", "True", "nas"), manifestFor(egress, "team", "web", 1), manifestFor(found("prod", "True", "nas"), "team", "web", 0)},
			want: map[string][]string{
				"shop/web": {address + "shop/web-prod-nas:80" + waits},
				"team/web": {address + "- Conflict The device nas of tailnet prod of TailscaleGateway shop/web" + conflict + "device nas of tailnet prod of TailscaleGateway team/web"},
			},
		},
		"NotMade": {
			reason:  "A route that cannot be generated does not block others.",
			objects: []string{manifestFor(egress, "shop", "web", 1), found("prod", "True", "nas-"), manifestFor(egress, "team", "web", 9), manifestFor(found("prod", "True", "nas"), "team", "web", 0)},
			want: map[string][]string{
				"shop/web": {address + "- Pending Waiting for proxies to carry traffic to it"},
				"team/web": {address + "team/web-prod-nas:80" + waits},
			},
		},
		"OtherListener": {
			reason: "At another listener the same path is free.",
			objects: []string{
				manifestFor(joins(discovers("prod", "HTTP", strings.Replace(atListen, "HTTPS", "HTTP", 1))), "shop", "web", 1), found("prod", "True", "nas"),
				manifestFor(joins(discovers("prod", "HTTP", atListen)), "team", "web", 9), manifestFor(found("prod", "True", "nas"), "team", "web", 0),
			},
			want: map[string][]string{
				"shop/web": {"Egress nas.example.com/tailscale/nas -> shop/web-prod-nas:80" + waits},
				"team/web": {"Egress nas.example.com/tailscale/nas -> team/web-prod-nas:80" + waits},
			},
		},
		"User": {
			reason: "A user's route takes precedence over both.",
			objects: []string{
				manifestFor(egress, "shop", "web", 1), found("prod", "True", "nas"), manifestFor(egress, "team", "web", 9), manifestFor(found("prod", "True", "nas"), "team", "web", 0),
				routeTo("HTTPRoute", "shop", "mine", "{name: web}", "True", "hostnames: [nas.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/nas}}]}]"),
			},
			want: map[string][]string{
				"shop/web": {address + "- Conflict HTTPRoute shop/mine" + conflict + "device nas of tailnet prod"},
				"team/web": {address + "- Conflict HTTPRoute shop/mine" + conflict + "device nas of tailnet prod"},
			},
		},
		"Ingress": {
			reason: "The older TailscaleGateway also gets the route to a Service.",
			objects: []string{
				manifestFor(joins(sharesServices("prod", defaultIngress)), "shop", "web", 1), manifestFor(joins(sharesServices("prod", defaultIngress)), "shop", "other", 9), app,
			},
			want: map[string][]string{
				"shop/web":   {"Ingress app.prod.gateway.local/ -> shop/app:80" + waits},
				"shop/other": {"Ingress app.prod.gateway.local/ -> - Conflict Service shop/app for tailnet prod of TailscaleGateway shop/web has app.prod.gateway.local/ already; no route is generated for Service shop/app for tailnet prod of TailscaleGateway shop/other"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := objects(t, append([]string{gateway}, tc.objects...)...)
			keys := keysOf(slices.Sorted(maps.Keys(tc.want)))
			for _, key := range keys {
				existing, _ := converge(t, all, nil, key)
				for _, order := range [][]types.NamespacedName{keys, {keys[1], keys[0]}} {
					_, got := converge(t, all, existing, order...)
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("\n%s\n%s had the address, planning in the order %v: -want, +got:\n%s", tc.reason, key, order, diff)
					}
				}
			}
		})
	}
}

// TestPeersTakeOver checks that an address moves to the younger TailscaleGateway when the older
// one's service is gone, and back when it is discovered again.
func TestPeersTakeOver(t *testing.T) {
	egress := joins(discovers("prod", "HTTP", defaultEgress))
	keys := keysOf([]string{"shop/web", "team/web"})
	objectsFor := func(services ...string) []client.Object {
		return objects(t, gateway, manifestFor(egress, "shop", "web", 1), manifestFor(egress, "team", "web", 9), found("prod", "True", services...), manifestFor(found("prod", "True", "nas"), "team", "web", 0))
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
		routes, _ = converge(t, objectsFor(step.services...), routes, keys...)
		if len(routes) != 1 || routes[0].GetNamespace() != step.want {
			t.Errorf("with services %v: routes %v, want one in namespace %s", step.services, byKey(routes), step.want)
		}
	}
}

// TestCollides checks that a report distinguishes a conflict between generated routes from a
// conflict with a user's route.
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
			reason:  "Another service of the TailscaleGateway is a generated route.",
			objects: []string{two, found("prod", "True", "nas"), found("dev", "True", "nas")}, want: []bool{true, false},
		},
		"Peer": {
			reason: "A service of another TailscaleGateway is a generated route.",
			objects: []string{
				manifestFor(two, "shop", "web", 9), found("prod", "True", "nas"),
				manifestFor(joins(discovers("prod", "HTTP", defaultEgress)), "team", "web", 1), manifestFor(found("prod", "True", "nas"), "team", "web", 0),
			},
			peers: []string{"team/web"}, want: []bool{true},
		},
		"User": {
			reason: "A user's route is not generated.",
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
				routes, _ := converge(t, all, nil, n)
				all = append(all, routes...)
			}
			var got []bool
			for _, r := range plan(inputFor(t, web, all...)).report().GeneratedRoutes {
				got = append(got, r.ConflictsWithGenerated)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

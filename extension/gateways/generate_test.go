// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// Patterns as the schema has them by default.
const (
	defaultEgress  = `{hostPattern: "{service}.tailscale.local", pathPrefix: "/tailscale/{service}/", protocol: HTTP}`
	defaultIngress = `{hostPattern: "{service}.{tailnet}.gateway.local", pathPrefix: "/", protocol: HTTP}`
)

// joins is a TailscaleGateway with tailnets.
func joins(tailnets ...string) string {
	return `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: web}
spec:
  gatewayRef: {name: web}
  tailnets:
  - ` + strings.Join(tailnets, "\n  - ") + "\n"
}

func discovers(tailnet, protocol, egress string) string {
	return fmt.Sprintf("{name: %s, serviceDiscovery: {patterns: ['*'], port: 80, protocol: %s}, routeGeneration: {egress: %s}}", tailnet, protocol, egress)
}

func sharesServices(tailnet, ingress string) string {
	return fmt.Sprintf("{name: %s, routeGeneration: {ingress: %s}}", tailnet, ingress)
}

// found is a TailscaleEndpoints of a tailnet that found names: a service's begins with
// svc-. What ends with - has no Service yet.
func found(tailnet string, successful string, of ...string) string {
	out := fmt.Sprintf(`
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata:
  name: web-%[1]s
  labels: {gateway.tailscale.com/gateway: web, gateway.tailscale.com/gateway-tailnet: %[1]s}
spec: {tailnet: %[1]s}
status:
  conditions:
  - {type: DiscoverySuccessful, status: "%[2]s", reason: Discovered, lastTransitionTime: "2026-01-02T03:04:05Z"}
`, tailnet, successful)
	discovered, targets := []string{"  discoveredEndpoints:"}, []string{"  egressTargets:"}
	for _, d := range of {
		name := strings.TrimSuffix(d, "-")
		source, host := "Devices", name
		if s, ok := strings.CutPrefix(name, "svc-"); ok {
			source, host = "Services", s
		}
		discovered = append(discovered, fmt.Sprintf("  - {name: %s, source: %s, tailscaleFQDN: %s.%s.ts.net.}", name, source, host, tailnet))
		if name == d {
			targets = append(targets, fmt.Sprintf("  - {name: %[1]s/80, address: '100.64.0.1:80', protocol: HTTP, readyProxies: 1, service: 'web-%[2]s-%[1]s:80'}", name, tailnet))
		}
	}
	if len(of) == 0 {
		return out
	}
	return out + strings.Join(append(discovered, targets...), "\n") + "\n"
}

// publishes is a TailscaleServices that is composed for the TailscaleGateway.
func publishes(tailnet, service string) string {
	return fmt.Sprintf(`
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata:
  name: web-%[1]s-%[2]s
  labels: {gateway.tailscale.com/gateway: web, gateway.tailscale.com/gateway-tailnet: %[1]s, gateway.tailscale.com/tailnet: %[1]s}
spec:
  selector: {matchLabels: {gateway.tailscale.com/gateway: web}}
  vipService: {name: "svc:%[2]s", ports: ["tcp:80"]}
  backends: [{name: %[2]s, port: 80}]
`, tailnet, service)
}

// lines tell what became of wanted routes: HOST PREFIX -> BACKEND STATE MESSAGE.
func lines(of []*wanted) []string {
	var out []string
	for _, w := range of {
		to := "-"
		if w.made {
			to = fmt.Sprintf("%s/%s:%d", w.backend.Namespace, w.backend.Name, w.backend.Port)
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s%s -> %s %s %s", w.Direction, w.Hostname, w.PathPrefix, to, w.State, w.Message)))
	}
	return out
}

func TestGenerated(t *testing.T) {
	app := routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}], matches: [{path: {type: PathPrefix, value: /app}}]}]")
	cases := map[string]struct {
		reason  string
		objects []string
		want    []string
	}{
		"Defaults": {
			reason:  "A service should be called without svc-, and a device by its name.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "svc-grafana", "nas")},
			want: []string{
				"Egress grafana.tailscale.local/tailscale/grafana -> shop/web-prod-svc-grafana:80 Pending Waiting for Envoy Gateway",
				"Egress nas.tailscale.local/tailscale/nas -> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway",
			},
		},
		"DeviceLikeService": {
			reason: "A device that is called like a service takes nothing of it, wherever it is.",
			objects: []string{
				gateway, joins(discovers("dev", "HTTP", defaultEgress), discovers("prod", "HTTP", defaultEgress)),
				found("dev", "True", "payments"), found("prod", "True", "orders", "svc-orders", "svc-payments"),
			},
			want: []string{
				"Egress orders.tailscale.local/tailscale/orders -> shop/web-prod-svc-orders:80 Pending Waiting for Envoy Gateway",
				"Egress payments.tailscale.local/tailscale/payments -> shop/web-prod-svc-payments:80 Pending Waiting for Envoy Gateway",
				"Egress payments.tailscale.local/tailscale/payments -> - Conflict The service payments of tailnet prod has payments.tailscale.local/tailscale/payments already, so the device payments of tailnet dev gets no route",
				"Egress orders.tailscale.local/tailscale/orders -> - Conflict The service orders of tailnet prod has orders.tailscale.local/tailscale/orders already, so the device orders of tailnet prod gets no route",
			},
		},
		"Variables": {
			reason: "All variables should stand in host and path.",
			objects: []string{
				gateway, joins(discovers("prod", "HTTP", `{hostPattern: "{service}.{domain}", pathPrefix: "/{namespace}/{tailnet}", protocol: HTTP}`)), found("prod", "True", "nas"),
			},
			want: []string{"Egress nas.prod.ts.net/shop/prod -> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway"},
		},
		"Off": {
			reason:  "Nothing should be made where discovery is off, or of what another tailnet has.",
			objects: []string{gateway, joins("{name: prod, serviceDiscovery: {enabled: false}, routeGeneration: {egress: "+defaultEgress+"}}", discovers("dev", "HTTP", defaultEgress)), found("prod", "True", "nas")},
		},
		"SelectsAll": {
			reason:  "Nothing should be made where nothing says what is to be reached, whatever was found before.",
			objects: []string{gateway, joins("{name: prod, serviceDiscovery: {excludePatterns: ['proxy-*'], port: 80}, routeGeneration: {egress: " + defaultEgress + "}}"), found("prod", "True", "svc-db", "nas")},
		},
		"Published": {
			reason: "What the TailscaleGateway publishes in a tailnet should get no route there; another's, a device, and a namesake in another tailnet should.",
			objects: []string{
				gateway, joins(discovers("prod", "HTTP", defaultEgress), discovers("dev", "HTTP", `{hostPattern: "{service}.{tailnet}.local", pathPrefix: "/", protocol: HTTP}`)),
				found("prod", "True", "svc-app", "svc-db", "app"), found("dev", "True", "svc-app"), publishes("prod", "app"),
			},
			want: []string{
				"Egress db.tailscale.local/tailscale/db -> shop/web-prod-svc-db:80 Pending Waiting for Envoy Gateway",
				"Egress app.dev.local/ -> shop/web-dev-svc-app:80 Pending Waiting for Envoy Gateway",
				"Egress app.tailscale.local/tailscale/app -> shop/web-prod-app:80 Pending Waiting for Envoy Gateway",
			},
		},
		"NoProxyYet": {
			reason:  "What no Service leads to yet should wait, and have its place.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "nas-")},
			want:    []string{"Egress nas.tailscale.local/tailscale/nas -> - Pending Waiting for proxies to carry traffic to it"},
		},
		"NoListener": {
			reason:  "Without a listener of the protocol it should be said which is missing.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", strings.Replace(defaultEgress, "protocol: HTTP", "protocol: HTTPS", 1))), found("prod", "True", "nas")},
			want:    []string{"Egress nas.tailscale.local/tailscale/nas -> - Refused Gateway shop/web has no listener of protocol HTTPS for host nas.tailscale.local; add one, or change routeGeneration"},
		},
		"NoGateway": {
			reason:  "Without a Gateway there should be no routes.",
			objects: []string{joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "nas")},
			want:    []string{"Egress nas.tailscale.local/tailscale/nas -> - Refused There is no Gateway shop/web"},
		},
		"TwoTailnets": {
			reason:  "Of two services with one address that of the first tailnet should have it.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", defaultEgress), discovers("dev", "HTTP", defaultEgress)), found("dev", "True", "nas"), found("prod", "True", "nas")},
			want: []string{
				"Egress nas.tailscale.local/tailscale/nas -> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway",
				"Egress nas.tailscale.local/tailscale/nas -> - Conflict The device nas of tailnet prod has nas.tailscale.local/tailscale/nas already, so the device nas of tailnet dev gets no route",
			},
		},
		"ServiceAndDevice": {
			reason:  "A service and a device of one name should not share an address, and the service should have it.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "svc-nas", "nas")},
			want: []string{
				"Egress nas.tailscale.local/tailscale/nas -> shop/web-prod-svc-nas:80 Pending Waiting for Envoy Gateway",
				"Egress nas.tailscale.local/tailscale/nas -> - Conflict The service nas of tailnet prod has nas.tailscale.local/tailscale/nas already, so the device nas of tailnet prod gets no route",
			},
		},
		"PersonsRoute": {
			reason: "A person's route of the same host and path should win, and one that is more specific should be let be.",
			objects: []string{
				gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "a", "b", "c", "d", "e"),
				routeTo("HTTPRoute", "shop", "a", "{name: web}", "True", "hostnames: [a.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/a/}}]}]"),
				routeTo("HTTPRoute", "shop", "b", "{name: web}", "True", "hostnames: [b.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/b/status}}]}]"),
				routeTo("HTTPRoute", "shop", "c", "{name: web}", "True", "hostnames: [c.tailscale.local]\n  rules: [{matches: [{method: GET, path: {type: PathPrefix, value: /tailscale/c}}]}]"),
				routeTo("HTTPRoute", "shop", "d", "{name: web}", "False", "hostnames: [d.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/d}}]}]"),
				routeTo("HTTPRoute", "shop", "e", "{name: web, sectionName: https}", "True", "hostnames: [e.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/e}}]}]"),
			},
			want: []string{
				"Egress a.tailscale.local/tailscale/a -> - Conflict HTTPRoute shop/a has a.tailscale.local/tailscale/a already, so the device a of tailnet prod gets no route",
				"Egress b.tailscale.local/tailscale/b -> shop/web-prod-b:80 Pending Waiting for Envoy Gateway",
				"Egress c.tailscale.local/tailscale/c -> shop/web-prod-c:80 Pending Waiting for Envoy Gateway",
				"Egress d.tailscale.local/tailscale/d -> shop/web-prod-d:80 Pending Waiting for Envoy Gateway",
				"Egress e.tailscale.local/tailscale/e -> shop/web-prod-e:80 Pending Waiting for Envoy Gateway",
			},
		},
		"NoHost": {
			reason:  "A pattern that makes no host name should be refused.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", `{hostPattern: "{service}-.local", pathPrefix: "/", protocol: HTTP}`)), found("prod", "True", "nas")},
			want:    []string{"Egress nas-.local/ -> - Refused \"nas-.local\" is no host name; change hostPattern"},
		},
		"Ingress": {
			reason: "A Service should get one route, in the namespace of the route that names it: its own comes first, and its lowest port.",
			objects: []string{
				gateway, joins(sharesServices("prod", defaultIngress)), app,
				routeTo("HTTPRoute", "shop", "other", "{name: web}", "True", "rules: [{backendRefs: [{name: app, port: 79}, {name: db, namespace: open, port: 80}, {name: forbidden, namespace: team, port: 80}]}]"),
				routeTo("GRPCRoute", "shop", "rpc", "{name: web}", "True", "rules: [{backendRefs: [{name: rpc, port: 90}]}]"),
				routeTo("TCPRoute", "shop", "tcp", "{name: web}", "True", "rules: [{backendRefs: [{name: tcp, port: 90}]}]"),
			},
			want: []string{
				"Ingress db.prod.gateway.local/ -> open/db:80 Pending Waiting for Envoy Gateway",
				"Ingress app.prod.gateway.local/ -> shop/app:79 Pending Waiting for Envoy Gateway",
				"Ingress rpc.prod.gateway.local/ -> shop/rpc:90 Pending Waiting for Envoy Gateway",
			},
		},
		"IngressGRPCPrefix": {
			reason: "A GRPCRoute has no path prefix, so a Service behind one should say what to change.",
			objects: []string{
				gateway, joins(sharesServices("prod", `{hostPattern: "*", pathPrefix: "/svc/{service}", protocol: HTTP}`)), app,
				routeTo("GRPCRoute", "shop", "rpc", "{name: web}", "True", "rules: [{backendRefs: [{name: rpc, port: 90}]}]"),
			},
			want: []string{
				"Ingress */svc/app -> shop/app:80 Pending Waiting for Envoy Gateway",
				"Ingress */svc/rpc -> - Refused It is behind GRPCRoutes, and these take no path prefix; set pathPrefix of routeGeneration.ingress to /, or write a route for it",
			},
		},
		"AnyHost": {
			reason: "A pattern that stands for any host should leave the path to tell services apart, and win over a route for all requests.",
			objects: []string{
				gateway, joins(discovers("prod", "HTTP", `{hostPattern: "*", pathPrefix: "/tailscale/{service}/", protocol: HTTP}`)), found("prod", "True", "svc-web", "svc-api"),
				routeTo("HTTPRoute", "shop", "all", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"),
				routeTo("HTTPRoute", "shop", "mine", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}], matches: [{path: {type: PathPrefix, value: /tailscale/api}}]}]"),
			},
			want: []string{
				"Egress */tailscale/api -> - Conflict HTTPRoute shop/mine has */tailscale/api already, so the service api of tailnet prod gets no route",
				"Egress */tailscale/web -> shop/web-prod-svc-web:80 Pending Waiting for Envoy Gateway",
			},
		},
		"IngressDomain": {
			reason:  "The domain of a tailnet is known by what is in it.",
			objects: []string{gateway, joins(sharesServices("prod", `{hostPattern: "{service}.{namespace}.{domain}", pathPrefix: "/", protocol: HTTP}`)), app},
			want:    []string{"Ingress / -> - Refused The domain of the tailnet is not known yet"},
		},
		"IngressElsewhere": {
			reason: "Who may make TailscaleGateways in one namespace may not make routes in others.",
			objects: []string{
				strings.Replace(gateway, "name: web}", "name: web, namespace: edge}", 1),
				strings.Replace(joins(sharesServices("prod", defaultIngress)), "gatewayRef: {name: web}", "gatewayRef: {name: web, namespace: edge}", 1),
				sharesGrant("shop", "edge"),
				routeTo("HTTPRoute", "team", "app", "{name: web, namespace: edge, sectionName: https}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"),
				routeTo("HTTPRoute", "shop", "mine", "{name: web, namespace: edge, sectionName: https}", "True", "rules: [{backendRefs: [{name: mine, port: 80}]}]"),
			},
			want: []string{
				"Ingress mine.prod.gateway.local/ -> shop/mine:80 Pending Waiting for Envoy Gateway",
				"Ingress app.prod.gateway.local/ -> - Refused Routes of namespace team are generated for TailscaleGateways of namespace edge or team alone",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan(inputOf(t, objects(t, tc.objects...)...))
			if diff := cmp.Diff(tc.want, lines(got.routes)); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// ours makes what the API server would have of wanted routes.
func ours(t *testing.T, in input, of []*wanted) []client.Object {
	t.Helper()
	var out []client.Object
	for _, w := range of {
		if w.made {
			out = append(out, routeOf(in.object, w))
		}
	}
	return out
}

// TestGeneratedStand shows that a report says what Envoy Gateway says.
func TestGeneratedStand(t *testing.T) {
	said := func(typ string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: typ, Status: status, Message: message}
	}
	accepted, refused := said("Accepted", metav1.ConditionTrue, ""), said("Accepted", metav1.ConditionFalse, "No listeners match this route")
	cases := map[string]struct {
		reason  string
		parents [][]metav1.Condition
		want    string
	}{
		"Nothing":  {reason: "It should be waited for.", want: "Pending Waiting for Envoy Gateway"},
		"Accepted": {reason: "A route that was accepted answers.", parents: [][]metav1.Condition{{accepted}}, want: "Accepted "},
		"Refused":  {reason: "Its reason should be told.", parents: [][]metav1.Condition{{refused}, {refused}}, want: "Refused Envoy Gateway: No listeners match this route"},
		"Partly":   {reason: "One listener is enough to answer.", parents: [][]metav1.Condition{{refused}, {accepted}}, want: "Accepted Envoy Gateway: No listeners match this route"},
		"NoBackend": {
			reason:  "Where the Service cannot be used, nothing but errors are answered.",
			parents: [][]metav1.Condition{{accepted, said("ResolvedRefs", metav1.ConditionFalse, "Service not found")}}, want: "Refused Envoy Gateway: Service not found",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := objects(t, gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "nas"))
			in := inputOf(t, of...)
			made := httpRoute(in.object, plan(in).routes[0])
			in.generated = []client.Object{made}
			for _, p := range tc.parents {
				made.Status.Parents = append(made.Status.Parents, gwapiv1.RouteParentStatus{Conditions: p})
			}
			r := plan(in).report.GeneratedRoutes[0]
			if diff := cmp.Diff(tc.want, string(r.State)+" "+r.Message); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGeneratedKept shows what becomes of routes that are there when their service is
// not found any more.
func TestGeneratedKept(t *testing.T) {
	both := joins(discovers("prod", "HTTP", defaultEgress), discovers("dev", "HTTP", strings.ReplaceAll(defaultEgress, "local", "{tailnet}")))
	all := objects(t, gateway, both, found("prod", "True", "nas", "svc-db"), found("dev", "True", "nas"))
	before := inputOf(t, all...)
	there := ours(t, before, plan(before).routes)
	if len(there) != 3 {
		t.Fatalf("%d routes, want 3", len(there))
	}
	cases := map[string]struct {
		reason string
		now    []string
		want   []string
	}{
		"Gone": {
			reason: "A tailnet without a service any more should lose its route.",
			now:    []string{found("prod", "True", "svc-db"), found("dev", "True", "nas")},
			want:   []string{"db.tailscale.local false", "nas.tailscale.dev false"},
		},
		"Failing": {
			reason: "A tailnet that cannot be searched should keep its routes, and disturb no other.",
			now:    []string{found("prod", "False"), found("dev", "True")},
			want:   []string{"db.tailscale.local true", "nas.tailscale.local true"},
		},
		"FailingPublished": {
			reason: "What the TailscaleGateway publishes meanwhile should lose its route.",
			now:    []string{found("prod", "False"), found("dev", "True", "nas"), publishes("prod", "db")},
			want:   []string{"nas.tailscale.local true", "nas.tailscale.dev false"},
		},
		"FailingWithSome": {
			reason: "What is known of a tailnet that cannot be searched should be followed.",
			now:    []string{found("prod", "False", "svc-db", "new"), found("dev", "True", "nas")},
			want:   []string{"db.tailscale.local false", "nas.tailscale.local true", "new.tailscale.local false", "nas.tailscale.dev false"},
		},
		"NoServiceForNow": {
			reason: "A target that is still found keeps its route while its Service is unknown, and another one waits.",
			now:    []string{found("prod", "True", "nas-", "svc-db-", "new-"), found("dev", "True", "nas")},
			want:   []string{"db.tailscale.local true", "nas.tailscale.local true", "new.tailscale.local false", "nas.tailscale.dev false"},
		},
		"AnotherPort": {
			reason: "A change of the port takes no route away before the proxies have the new one.",
			now:    []string{strings.ReplaceAll(both, "port: 80", "port: 8080"), found("prod", "True", "nas", "svc-db"), found("dev", "True", "nas")},
			want:   []string{"db.tailscale.local true", "nas.tailscale.local true", "nas.tailscale.dev true"},
		},
		"NotSearchedYet": {
			reason: "A tailnet of which nobody can tell whether it was searched keeps its routes.",
			now:    []string{found("prod", "Unknown"), found("dev", "True", "nas")},
			want:   []string{"db.tailscale.local true", "nas.tailscale.local true", "nas.tailscale.dev false"},
		},
		"OtherPatterns": {
			reason: "What is kept has the place that it had, whatever is known of the tailnet's domain.",
			now:    []string{strings.ReplaceAll(both, "{service}.tailscale.local", "{service}.{domain}"), found("prod", "False"), found("dev", "True", "nas")},
			want:   []string{"db.tailscale.local true", "nas.tailscale.local true", "nas.tailscale.dev false"},
		},
		"NoEndpoints": {
			reason: "So does one whose TailscaleEndpoints is made again.",
			now:    []string{found("dev", "True", "nas")},
			want:   []string{"db.tailscale.local true", "nas.tailscale.local true", "nas.tailscale.dev false"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := tc.now
			if !strings.Contains(now[0], "kind: TailscaleGateway") {
				now = append([]string{both}, now...)
			}
			of := append(objects(t, append([]string{gateway}, now...)...), there...)
			var got []string
			for _, w := range plan(inputOf(t, of...)).routes {
				got = append(got, fmt.Sprint(w.Hostname, " ", w.kept))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	in := []string{
		gateway, listenerSet, found("prod", "True", "nas", "svc-nas", "svc-db"), found("dev", "False", "nas"),
		joins(strings.Replace(discovers("prod", "HTTPS", defaultEgress), "{egress", "{ingress: "+defaultIngress+", egress", 1), discovers("dev", "HTTP", defaultEgress)),
	}
	for i := range 20 {
		in = append(in, routeTo("HTTPRoute", []string{"shop", "team"}[i%2], fmt.Sprint("app", i), "{name: web, namespace: shop}", "True",
			fmt.Sprintf("rules: [{backendRefs: [{name: app%d, port: 80}, {name: common, namespace: open, port: %d}]}]", i%3, i)))
	}
	of := objects(t, in...)
	want := plan(inputOf(t, of...))
	if len(want.routes) < 10 {
		t.Fatalf("%d routes are too few to tell anything", len(want.routes))
	}
	for range 20 {
		rand.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		got := plan(inputOf(t, of...))
		if diff := cmp.Diff(want.report, got.report); diff != "" {
			t.Fatalf("another order has another report: -first, +now:\n%s", diff)
		}
		if diff := cmp.Diff(lines(want.routes), lines(got.routes)); diff != "" {
			t.Fatalf("another order has other routes: -first, +now:\n%s", diff)
		}
	}
}

// TestHTTPRoute shows a whole route, of a service that speaks TLS.
func TestHTTPRoute(t *testing.T) {
	in := inputOf(t, objects(t, gateway, joins(discovers("prod", "HTTPS", defaultEgress)), found("prod", "True", "svc-grafana"))...)
	w := plan(in).routes[0]
	want := objects(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web-prod-egress-svc-grafana-a5d2c5c8
  labels:
    app.kubernetes.io/managed-by: tailscale-gateway-extension
    gateway.tailscale.com/gateway: web
    gateway.tailscale.com/gateway-namespace: shop
    gateway.tailscale.com/gateway-tailnet: prod
    gateway.tailscale.com/generated: egress
    gateway.tailscale.com/endpoint: svc-grafana
  annotations:
    gateway.tailscale.com/description: "Generated for TailscaleGateway shop/web, which sends grafana.tailscale.local/tailscale/grafana to the service grafana of tailnet prod. Change routeGeneration of tailnet prod there: what is changed here is undone."
  ownerReferences:
  - {apiVersion: gateway.tailscale.com/v1alpha1, kind: TailscaleGateway, name: web, uid: TailscaleGateway/shop/web}
spec:
  parentRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: web, sectionName: http}
  hostnames: [grafana.tailscale.local]
  rules:
  - matches: [{path: {type: PathPrefix, value: /tailscale/grafana}}]
    filters:
    - type: URLRewrite
      urlRewrite: {hostname: grafana.prod.ts.net, path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}
    backendRefs: [{group: "", kind: Service, namespace: shop, name: web-prod-svc-grafana, port: 80, weight: 1}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: x}
spec:
  targetRefs: [{group: "", kind: Service, name: web-prod-svc-grafana}]
  validation: {hostname: grafana.prod.ts.net, wellKnownCACertificates: System}
`)
	want[0].SetUID("")
	if diff := cmp.Diff(want[0], client.Object(httpRoute(in.object, w))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	policy, ok := want[1].(*gwapiv1.BackendTLSPolicy)
	if !ok {
		t.Fatal("the policy is of another kind")
	}
	if diff := cmp.Diff(policy.Spec, tlsPolicy(in.object, w).Spec); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(httpRoute(in.object, w).ObjectMeta, tlsPolicy(in.object, w).ObjectMeta); diff != "" {
		t.Errorf("who made the policy and why is told otherwise than of the route:\n%s", diff)
	}
}

// TestGRPCRoute shows that a Service behind a GRPCRoute has a GRPCRoute of all methods, and
// one behind both kinds at one port an HTTPRoute.
func TestGRPCRoute(t *testing.T) {
	in := inputOf(t, objects(t, gateway, joins(sharesServices("prod", defaultIngress)),
		routeTo("GRPCRoute", "shop", "rpc", "{name: web}", "True", "rules: [{backendRefs: [{name: rpc, port: 90}, {name: both, port: 80}]}]"),
		routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: both, port: 80}]}]"))...)
	kinds := map[string]string{}
	for _, w := range plan(in).routes {
		kinds[w.Service] = w.Kind
		if w.Service != "rpc" {
			continue
		}
		got, ok := routeOf(in.object, w).(*gwapiv1.GRPCRoute)
		if !ok {
			t.Fatalf("%T, want a GRPCRoute", routeOf(in.object, w))
		}
		want := objects(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: x}
spec:
  parentRefs:
  - {group: gateway.networking.k8s.io, kind: Gateway, namespace: shop, name: web, sectionName: http}
  hostnames: [rpc.prod.gateway.local]
  rules:
  - backendRefs: [{group: "", kind: Service, namespace: shop, name: rpc, port: 90, weight: 1}]
`)[0]
		if diff := cmp.Diff(routeSpec(want), routeSpec(got)); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		in.generated = append(in.generated, got)
	}
	if diff := cmp.Diff(map[string]string{"rpc": kindGRPCRoute, "both": kindHTTPRoute}, kinds); diff != "" {
		t.Errorf("kinds: -want, +got:\n%s", diff)
	}
}

// TestRewrite shows what a service behind a route sees.
func TestRewrite(t *testing.T) {
	cases := map[string]struct {
		reason       string
		prefix, fqdn string
		want         string
	}{
		"Nothing": {reason: "What is asked for as it is needs no filter.", prefix: "/", want: "none"},
		"Path":    {reason: "The prefix should be cut off.", prefix: "/a", want: "/"},
		"Host":    {reason: "The service should see its own name.", prefix: "/", fqdn: "a.b", want: "a.b"},
		"Both":    {reason: "Both should be seen.", prefix: "/a", fqdn: "a.b", want: "a.b/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &wanted{fqdn: tc.fqdn}
			w.PathPrefix = tc.prefix
			got := "none"
			if f := rewrite(w); f != nil {
				got = ""
				if f.Hostname != nil {
					got += string(*f.Hostname)
				}
				if f.Path != nil {
					got += *f.Path.ReplacePrefixMatch
				}
			}
			if got != tc.want {
				t.Errorf("%s\nrewrite(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// BenchmarkPlan of 500 discovered services beside 500 routes of people's.
func BenchmarkPlan(b *testing.B) {
	in := []string{gateway, joins(discovers("prod", "HTTP", defaultEgress))}
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprint("svc-s", i))
		in = append(in, routeTo("HTTPRoute", "shop", fmt.Sprint("app", i), "{name: web}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"))
	}
	of := objects(b, append(in, found("prod", "True", names...))...)
	input := inputOf(b, of...)
	for b.Loop() {
		plan(input)
	}
}

// TestDescription has what people read of a route be one line, whatever a device is called.
func TestDescription(t *testing.T) {
	o := &gatewayv1alpha1.TailscaleGateway{}
	o.Namespace, o.Name = "shop", "web"
	w := &wanted{what: "the device a\nb\x1b[2J\u2028c of tailnet prod"}
	w.Hostname, w.PathPrefix, w.Tailnet = "nas.tailscale.local", "/", "prod"
	want := "Generated for TailscaleGateway shop/web, which sends nas.tailscale.local/ to the device a b [2J c of tailnet prod. Change routeGeneration of tailnet prod there: what is changed here is undone."
	if got := metaOf(o, w).Annotations[descriptionKey]; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

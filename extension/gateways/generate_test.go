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

	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
)

// The default patterns of the schema.
const (
	defaultEgress  = `{hostPattern: "{service}.tailscale.local", pathPrefix: "/tailscale/{service}/", protocol: HTTP}`
	defaultIngress = `{hostPattern: "{service}.{tailnet}.gateway.local", pathPrefix: "/", protocol: HTTP}`
)

// joins returns a TailscaleGateway with tailnets.
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

// found returns a TailscaleEndpoints of a tailnet with discovered endpoints. The prefix svc-
// marks a service, and the suffix - an endpoint without a Service.
func found(tailnet string, successful string, endpoints ...string) string {
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
	for _, d := range endpoints {
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
	if len(endpoints) == 0 {
		return out
	}
	return out + strings.Join(append(discovered, targets...), "\n") + "\n"
}

// publishes returns a TailscaleServices that is composed for the TailscaleGateway.
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

// lines formats desired routes: DIRECTION HOST PREFIX -> BACKEND STATE MESSAGE.
func lines(desired []*routes.Desired) []string {
	var out []string
	for _, w := range desired {
		backend := "-"
		if w.Generate {
			backend = fmt.Sprintf("%s/%s:%d", w.Backend.Namespace, w.Backend.Name, w.Backend.Port)
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s%s -> %s %s %s", w.Direction, w.Hostname, w.PathPrefix, backend, w.State, w.Message)))
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
			reason:  "Routes have the name of a service without svc-, and the name of a device.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "svc-grafana", "nas")},
			want: []string{
				"Egress grafana.tailscale.local/tailscale/grafana -> shop/web-prod-svc-grafana:80 Pending Waiting for Envoy Gateway",
				"Egress nas.tailscale.local/tailscale/nas -> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway",
			},
		},
		"DeviceLikeService": {
			reason: "A device with the name of a service does not take the service's address in any tailnet.",
			objects: []string{
				gateway, joins(discovers("dev", "HTTP", defaultEgress), discovers("prod", "HTTP", defaultEgress)),
				found("dev", "True", "payments"), found("prod", "True", "orders", "svc-orders", "svc-payments"),
			},
			want: []string{
				"Egress orders.tailscale.local/tailscale/orders -> shop/web-prod-svc-orders:80 Pending Waiting for Envoy Gateway",
				"Egress payments.tailscale.local/tailscale/payments -> shop/web-prod-svc-payments:80 Pending Waiting for Envoy Gateway",
				"Egress payments.tailscale.local/tailscale/payments -> - Conflict The service payments of tailnet prod has payments.tailscale.local/tailscale/payments already; no route is generated for the device payments of tailnet dev",
				"Egress orders.tailscale.local/tailscale/orders -> - Conflict The service orders of tailnet prod has orders.tailscale.local/tailscale/orders already; no route is generated for the device orders of tailnet prod",
			},
		},
		"Variables": {
			reason: "Host and path support all variables.",
			objects: []string{
				gateway, joins(discovers("prod", "HTTP", `{hostPattern: "{service}.{domain}", pathPrefix: "/{namespace}/{tailnet}", protocol: HTTP}`)), found("prod", "True", "nas"),
			},
			want: []string{"Egress nas.prod.ts.net/shop/prod -> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway"},
		},
		"Off": {
			reason:  "Without discovery there are no routes, and endpoints of one tailnet make no routes of another.",
			objects: []string{gateway, joins("{name: prod, serviceDiscovery: {enabled: false}, routeGeneration: {egress: "+defaultEgress+"}}", discovers("dev", "HTTP", defaultEgress)), found("prod", "True", "nas")},
		},
		"SelectsAll": {
			reason:  "Without patterns or other filters there are no routes, even to endpoints that were discovered before.",
			objects: []string{gateway, joins("{name: prod, serviceDiscovery: {excludePatterns: ['proxy-*'], port: 80}, routeGeneration: {egress: " + defaultEgress + "}}"), found("prod", "True", "svc-db", "nas")},
		},
		"Published": {
			reason: "A service that the TailscaleGateway publishes in a tailnet gets no route there. Other services, a device, and a service of the same name in another tailnet do.",
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
			reason:  "An endpoint without a Service waits, and occupies its host and path.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "nas-")},
			want:    []string{"Egress nas.tailscale.local/tailscale/nas -> - Pending Waiting for proxies to carry traffic to it"},
		},
		"NoListener": {
			reason:  "Without a listener for the protocol the message names the missing listener.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", strings.Replace(defaultEgress, "protocol: HTTP", "protocol: HTTPS", 1))), found("prod", "True", "nas")},
			want:    []string{"Egress nas.tailscale.local/tailscale/nas -> - Refused Gateway shop/web has no listener with protocol HTTPS for host nas.tailscale.local; add one, or change routeGeneration"},
		},
		"NoGateway": {
			reason:  "Without a Gateway there are no routes.",
			objects: []string{joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "nas")},
			want:    []string{"Egress nas.tailscale.local/tailscale/nas -> - Refused Gateway shop/web does not exist"},
		},
		"TwoTailnets": {
			reason:  "Of two services with one address, the one of the first tailnet gets it.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", defaultEgress), discovers("dev", "HTTP", defaultEgress)), found("dev", "True", "nas"), found("prod", "True", "nas")},
			want: []string{
				"Egress nas.tailscale.local/tailscale/nas -> shop/web-prod-nas:80 Pending Waiting for Envoy Gateway",
				"Egress nas.tailscale.local/tailscale/nas -> - Conflict The device nas of tailnet prod has nas.tailscale.local/tailscale/nas already; no route is generated for the device nas of tailnet dev",
			},
		},
		"ServiceAndDevice": {
			reason:  "A service and a device of the same name do not share an address: the service gets it.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "svc-nas", "nas")},
			want: []string{
				"Egress nas.tailscale.local/tailscale/nas -> shop/web-prod-svc-nas:80 Pending Waiting for Envoy Gateway",
				"Egress nas.tailscale.local/tailscale/nas -> - Conflict The service nas of tailnet prod has nas.tailscale.local/tailscale/nas already; no route is generated for the device nas of tailnet prod",
			},
		},
		"UserRoute": {
			reason: "A user's route with the same host and path wins. A more specific one is no conflict.",
			objects: []string{
				gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "a", "b", "c", "d", "e"),
				routeTo("HTTPRoute", "shop", "a", "{name: web}", "True", "hostnames: [a.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/a/}}]}]"),
				routeTo("HTTPRoute", "shop", "b", "{name: web}", "True", "hostnames: [b.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/b/status}}]}]"),
				routeTo("HTTPRoute", "shop", "c", "{name: web}", "True", "hostnames: [c.tailscale.local]\n  rules: [{matches: [{method: GET, path: {type: PathPrefix, value: /tailscale/c}}]}]"),
				routeTo("HTTPRoute", "shop", "d", "{name: web}", "False", "hostnames: [d.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/d}}]}]"),
				routeTo("HTTPRoute", "shop", "e", "{name: web, sectionName: https}", "True", "hostnames: [e.tailscale.local]\n  rules: [{matches: [{path: {type: PathPrefix, value: /tailscale/e}}]}]"),
			},
			want: []string{
				"Egress a.tailscale.local/tailscale/a -> - Conflict HTTPRoute shop/a has a.tailscale.local/tailscale/a already; no route is generated for the device a of tailnet prod",
				"Egress b.tailscale.local/tailscale/b -> shop/web-prod-b:80 Pending Waiting for Envoy Gateway",
				"Egress c.tailscale.local/tailscale/c -> shop/web-prod-c:80 Pending Waiting for Envoy Gateway",
				"Egress d.tailscale.local/tailscale/d -> shop/web-prod-d:80 Pending Waiting for Envoy Gateway",
				"Egress e.tailscale.local/tailscale/e -> shop/web-prod-e:80 Pending Waiting for Envoy Gateway",
			},
		},
		"NoHost": {
			reason:  "A pattern that expands to no valid host name is refused.",
			objects: []string{gateway, joins(discovers("prod", "HTTP", `{hostPattern: "{service}-.local", pathPrefix: "/", protocol: HTTP}`)), found("prod", "True", "nas")},
			want:    []string{"Egress nas-.local/ -> - Refused \"nas-.local\" is not a host name; change hostPattern"},
		},
		"Ingress": {
			reason: "A Service gets one route in the namespace of a route that references it. Its own namespace comes first, and its lowest port.",
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
			reason: "A GRPCRoute supports no path prefix, so the message says what to change.",
			objects: []string{
				gateway, joins(sharesServices("prod", `{hostPattern: "*", pathPrefix: "/svc/{service}", protocol: HTTP}`)), app,
				routeTo("GRPCRoute", "shop", "rpc", "{name: web}", "True", "rules: [{backendRefs: [{name: rpc, port: 90}]}]"),
			},
			want: []string{
				"Ingress */svc/app -> shop/app:80 Pending Waiting for Envoy Gateway",
				"Ingress */svc/rpc -> - Refused It is a backend of GRPCRoutes, which do not support a path prefix; set pathPrefix of routeGeneration.ingress to /, or create a route for it",
			},
		},
		"AnyHost": {
			reason: "With a pattern for any host the path distinguishes services, and the routes are more specific than a route for all requests.",
			objects: []string{
				gateway, joins(discovers("prod", "HTTP", `{hostPattern: "*", pathPrefix: "/tailscale/{service}/", protocol: HTTP}`)), found("prod", "True", "svc-web", "svc-api"),
				routeTo("HTTPRoute", "shop", "all", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"),
				routeTo("HTTPRoute", "shop", "mine", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}], matches: [{path: {type: PathPrefix, value: /tailscale/api}}]}]"),
			},
			want: []string{
				"Egress */tailscale/api -> - Conflict HTTPRoute shop/mine has */tailscale/api already; no route is generated for the service api of tailnet prod",
				"Egress */tailscale/web -> shop/web-prod-svc-web:80 Pending Waiting for Envoy Gateway",
			},
		},
		"IngressDomain": {
			reason:  "The domain of a tailnet is known once an endpoint of it is.",
			objects: []string{gateway, joins(sharesServices("prod", `{hostPattern: "{service}.{namespace}.{domain}", pathPrefix: "/", protocol: HTTP}`)), app},
			want:    []string{"Ingress / -> - Refused The domain of the tailnet is not known yet"},
		},
		"IngressChosen": {
			reason:  "Without a reference, the Gateway is that of the status, in the object's namespace.",
			objects: []string{gateway, strings.Replace(joins(sharesServices("prod", defaultIngress)), "  gatewayRef: {name: web}\n", "", 1) + "status: {gatewayRef: {name: web}}\n", app},
			want:    []string{"Ingress app.prod.gateway.local/ -> shop/app:80 Pending Waiting for Envoy Gateway"},
		},
		"IngressElsewhere": {
			reason: "The permission to create TailscaleGateways in one namespace does not include routes in others.",
			objects: []string{
				strings.Replace(gateway, "name: web}", "name: web, namespace: edge}", 1),
				strings.Replace(joins(sharesServices("prod", defaultIngress)), "gatewayRef: {name: web}", "gatewayRef: {name: web, namespace: edge}", 1),
				sharesGrant("shop", "edge"),
				routeTo("HTTPRoute", "team", "app", "{name: web, namespace: edge, sectionName: https}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"),
				routeTo("HTTPRoute", "shop", "mine", "{name: web, namespace: edge, sectionName: https}", "True", "rules: [{backendRefs: [{name: mine, port: 80}]}]"),
			},
			want: []string{
				"Ingress mine.prod.gateway.local/ -> shop/mine:80 Pending Waiting for Envoy Gateway",
				"Ingress app.prod.gateway.local/ -> - Refused Routes in namespace team are generated only for TailscaleGateways in namespace edge or team",
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

// generatedObjects returns the objects that the API server would have for desired routes.
func generatedObjects(t *testing.T, inputs input, desired []*routes.Desired) []client.Object {
	t.Helper()
	var out []client.Object
	for _, w := range desired {
		if w.Generate {
			out = append(out, routes.New(inputs.Object, w))
		}
	}
	return out
}

// TestGeneratedState checks that a report has the state from Envoy Gateway's conditions.
func TestGeneratedState(t *testing.T) {
	condition := func(typ string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: typ, Status: status, Message: message}
	}
	accepted, refused := condition("Accepted", metav1.ConditionTrue, ""), condition("Accepted", metav1.ConditionFalse, "No listeners match this route")
	cases := map[string]struct {
		reason  string
		parents [][]metav1.Condition
		want    string
	}{
		"Nothing":  {reason: "A route without a status is pending.", want: "Pending Waiting for Envoy Gateway"},
		"Accepted": {reason: "An accepted route is accepted.", parents: [][]metav1.Condition{{accepted}}, want: "Accepted "},
		"Refused":  {reason: "The message has the reason of a refusal once.", parents: [][]metav1.Condition{{refused}, {refused}}, want: "Refused Envoy Gateway: No listeners match this route"},
		"Partly":   {reason: "A route that one listener accepted is accepted.", parents: [][]metav1.Condition{{refused}, {accepted}}, want: "Accepted Envoy Gateway: No listeners match this route"},
		"NoBackend": {
			reason:  "A route whose Service cannot be used is refused, because Envoy only returns errors.",
			parents: [][]metav1.Condition{{accepted, condition("ResolvedRefs", metav1.ConditionFalse, "Service not found")}}, want: "Refused Envoy Gateway: Service not found",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := objects(t, gateway, joins(discovers("prod", "HTTP", defaultEgress)), found("prod", "True", "nas"))
			inputs := inputOf(t, objs...)
			route := routes.NewHTTPRoute(inputs.Object, plan(inputs).routes[0])
			inputs.Generated = []client.Object{route}
			for _, p := range tc.parents {
				route.Status.Parents = append(route.Status.Parents, gwapiv1.RouteParentStatus{Conditions: p})
			}
			r := plan(inputs).report().GeneratedRoutes[0]
			if diff := cmp.Diff(tc.want, string(r.State)+" "+r.Message); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGeneratedRetained checks when existing routes stay although their endpoint is no longer
// discovered.
func TestGeneratedRetained(t *testing.T) {
	both := joins(discovers("prod", "HTTP", defaultEgress), discovers("dev", "HTTP", strings.ReplaceAll(defaultEgress, "local", "{tailnet}")))
	all := objects(t, gateway, both, found("prod", "True", "nas", "svc-db"), found("dev", "True", "nas"))
	previous := inputOf(t, all...)
	existing := generatedObjects(t, previous, plan(previous).routes)
	if len(existing) != 3 {
		t.Fatalf("%d routes, want 3", len(existing))
	}
	cases := map[string]struct {
		reason    string
		manifests []string
		want      []string
	}{
		"Gone": {
			reason:    "The route to an endpoint that a successful search did not find is deleted.",
			manifests: []string{found("prod", "True", "svc-db"), found("dev", "True", "nas")},
			want:      []string{"db.tailscale.local false", "nas.tailscale.dev false"},
		},
		"Failing": {
			reason:    "A tailnet whose search fails retains its routes, and does not affect other tailnets.",
			manifests: []string{found("prod", "False"), found("dev", "True")},
			want:      []string{"db.tailscale.local true", "nas.tailscale.local true"},
		},
		"FailingPublished": {
			reason:    "A service that the TailscaleGateway publishes now loses its route.",
			manifests: []string{found("prod", "False"), found("dev", "True", "nas"), publishes("prod", "db")},
			want:      []string{"nas.tailscale.local true", "nas.tailscale.dev false"},
		},
		"FailingWithSome": {
			reason:    "Endpoints that a failed search returned are used.",
			manifests: []string{found("prod", "False", "svc-db", "new"), found("dev", "True", "nas")},
			want:      []string{"db.tailscale.local false", "nas.tailscale.local true", "new.tailscale.local false", "nas.tailscale.dev false"},
		},
		"NoServiceForNow": {
			reason:    "A target without a Service retains its route, and a new one waits.",
			manifests: []string{found("prod", "True", "nas-", "svc-db-", "new-"), found("dev", "True", "nas")},
			want:      []string{"db.tailscale.local true", "nas.tailscale.local true", "new.tailscale.local false", "nas.tailscale.dev false"},
		},
		"AnotherPort": {
			reason:    "After a change of the port, routes stay until the proxies have the new port.",
			manifests: []string{strings.ReplaceAll(both, "port: 80", "port: 8080"), found("prod", "True", "nas", "svc-db"), found("dev", "True", "nas")},
			want:      []string{"db.tailscale.local true", "nas.tailscale.local true", "nas.tailscale.dev true"},
		},
		"NotSearchedYet": {
			reason:    "A tailnet that has not been searched yet retains its routes.",
			manifests: []string{found("prod", "Unknown"), found("dev", "True", "nas")},
			want:      []string{"db.tailscale.local true", "nas.tailscale.local true", "nas.tailscale.dev false"},
		},
		"OtherPatterns": {
			reason:    "A retained route keeps its host and path, even if the domain of the tailnet is unknown.",
			manifests: []string{strings.ReplaceAll(both, "{service}.tailscale.local", "{service}.{domain}"), found("prod", "False"), found("dev", "True", "nas")},
			want:      []string{"db.tailscale.local true", "nas.tailscale.local true", "nas.tailscale.dev false"},
		},
		"NoEndpoints": {
			reason:    "A tailnet without a TailscaleEndpoints retains its routes.",
			manifests: []string{found("dev", "True", "nas")},
			want:      []string{"db.tailscale.local true", "nas.tailscale.local true", "nas.tailscale.dev false"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			manifests := tc.manifests
			if !strings.Contains(manifests[0], "kind: TailscaleGateway") {
				manifests = append([]string{both}, manifests...)
			}
			objs := append(objects(t, append([]string{gateway}, manifests...)...), existing...)
			var got []string
			for _, w := range plan(inputOf(t, objs...)).routes {
				got = append(got, fmt.Sprint(w.Hostname, " ", w.Retained))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlanIsDeterministic(t *testing.T) {
	manifests := []string{
		gateway, listenerSet, found("prod", "True", "nas", "svc-nas", "svc-db"), found("dev", "False", "nas"),
		joins(strings.Replace(discovers("prod", "HTTPS", defaultEgress), "{egress", "{ingress: "+defaultIngress+", egress", 1), discovers("dev", "HTTP", defaultEgress)),
	}
	for i := range 20 {
		manifests = append(manifests, routeTo("HTTPRoute", []string{"shop", "team"}[i%2], fmt.Sprint("app", i), "{name: web, namespace: shop}", "True",
			fmt.Sprintf("rules: [{backendRefs: [{name: app%d, port: 80}, {name: common, namespace: open, port: %d}]}]", i%3, i)))
	}
	objs := objects(t, manifests...)
	want := plan(inputOf(t, objs...))
	if len(want.routes) < 10 {
		t.Fatalf("%d routes, want at least 10", len(want.routes))
	}
	for range 20 {
		rand.Shuffle(len(objs), func(i, j int) { objs[i], objs[j] = objs[j], objs[i] })
		got := plan(inputOf(t, objs...))
		if diff := cmp.Diff(want.report(), got.report()); diff != "" {
			t.Fatalf("report of another order of input: -first, +now:\n%s", diff)
		}
		if diff := cmp.Diff(lines(want.routes), lines(got.routes)); diff != "" {
			t.Fatalf("routes of another order of input: -first, +now:\n%s", diff)
		}
	}
}

// BenchmarkPlan measures plan with many routes and endpoints.
func BenchmarkPlan(b *testing.B) {
	manifests := []string{gateway, joins(discovers("prod", "HTTP", defaultEgress))}
	var names []string
	for i := range 500 {
		names = append(names, fmt.Sprint("svc-s", i))
		manifests = append(manifests, routeTo("HTTPRoute", "shop", fmt.Sprint("app", i), "{name: web}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"))
	}
	objs := objects(b, append(manifests, found("prod", "True", names...))...)
	input := inputOf(b, objs...)
	for b.Loop() {
		plan(input)
	}
}

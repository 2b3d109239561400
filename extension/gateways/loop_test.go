// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// searches returns a TailscaleGateway of a Gateway of the same name in a namespace of that
// name, with a creation time in seconds, and the endpoints that it discovered in tailnet prod.
func searches(name string, second int, services ...string) []string {
	labels := fmt.Sprintf("{gateway.tailscale.com/gateway: %s, gateway.tailscale.com/gateway-tailnet: prod}", name)
	out := []string{fmt.Sprintf(`
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: %[1]s, namespace: %[1]s, creationTimestamp: '2026-01-02T03:04:%02[2]dZ'}
spec:
  gatewayRef: {name: %[1]s}
  tailnets:
  - %[3]s
`, name, second, discovers("prod", "HTTP", defaultEgress))}
	var found, targets strings.Builder
	targets.WriteString("  egressTargets:\n")
	fmt.Fprintf(&found, `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: %[1]s-prod, namespace: %[1]s, labels: %[2]s}
spec: {tailnet: prod}
status:
  conditions:
  - {type: DiscoverySuccessful, status: "True", reason: Discovered, lastTransitionTime: "2026-01-02T03:04:05Z"}
  discoveredEndpoints:
`, name, labels)
	for _, s := range services {
		fmt.Fprintf(&found, "  - {name: svc-%[1]s, source: Services, tailscaleFQDN: %[1]s.prod.ts.net.}\n", s)
		fmt.Fprintf(&targets, "  - {name: svc-%[1]s/80, address: '100.64.0.1:80', protocol: HTTP, readyProxies: 1, service: '%[2]s-%[1]s:80'}\n", s, name)
	}
	return append(out, found.String()+targets.String())
}

// leadsTo returns a TailscaleServices that leads to the Gateway of a namespace, with a DNS name
// in tailnet prod.
func leadsTo(gateway, service string) string {
	return fmt.Sprintf(`
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: proxies}}
  vipService: {ports: ["tcp:80"]}
  backends: [{kind: TailscaleGateway, name: %[1]s}]
status: {vipServiceStatus: {created: true, serviceName: "svc:%[2]s", dnsName: %[2]s.prod.ts.net, backendCount: 1, healthyBackendCount: 1}}
`, gateway, service)
}

// TestLoops checks which routes are refused because they lead back to their Gateway.
func TestLoops(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects [][]string

		// want holds the services to which each TailscaleGateway generates no route.
		want map[string][]string
	}{
		"Itself": {
			reason:  "A service that leads to the Gateway itself creates a loop, even if another client created it.",
			objects: [][]string{searches("a", 1, "a", "db"), {leadsTo("a", "a")}},
			want:    map[string][]string{"a": {"a"}},
		},
		"OneWay": {
			reason:  "A Gateway may lead to another one.",
			objects: [][]string{searches("a", 1, "b"), searches("b", 2, "db"), {leadsTo("a", "a"), leadsTo("b", "b")}},
			want:    map[string][]string{"a": nil, "b": nil},
		},
		"Each": {
			reason:  "Of two Gateways that lead to each other, the younger TailscaleGateway yields.",
			objects: [][]string{searches("a", 9, "b", "db"), searches("b", 1, "a", "db"), {leadsTo("a", "a"), leadsTo("b", "b")}},
			want:    map[string][]string{"a": {"b"}, "b": nil},
		},
		"Three": {
			reason:  "The youngest TailscaleGateway yields in longer loops.",
			objects: [][]string{searches("a", 1, "b"), searches("b", 2, "c"), searches("c", 3, "a", "db"), {leadsTo("a", "a"), leadsTo("b", "b"), leadsTo("c", "c")}},
			want:    map[string][]string{"a": nil, "b": nil, "c": {"a"}},
		},
		"NotMade": {
			reason:  "A service without a DNS name in its status does not exist in the tailnet yet.",
			objects: [][]string{searches("a", 9, "b"), searches("b", 1, "a"), {leadsTo("a", "a"), leadsTo("b", "other")}},
			want:    map[string][]string{"a": nil, "b": nil},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var manifests []string
			for _, group := range tc.objects {
				manifests = append(manifests, group...)
			}
			got := map[string][]string{}
			for name := range tc.want {
				got[name] = nil
				inputs := inputFor(t, types.NamespacedName{Namespace: name, Name: name}, objects(t, append(manifests, httpGateway(name))...)...)
				for _, w := range plan(inputs).routes {
					if !w.Generate {
						got[name] = append(got[name], w.Service)
						t.Log(w.State, w.Message)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nplan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func httpGateway(name string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %[1]s, namespace: %[1]s}
spec:
  gatewayClassName: eg
  listeners: [{name: http, port: 80, protocol: HTTP}]
`, name)
}

// TestSameServices checks that a change of the DNS name of a service is relevant.
func TestSameServices(t *testing.T) {
	o := objects(t, leadsTo("a", "a"))[0]
	previous, ok := o.DeepCopyObject().(*gatewayv1alpha1.TailscaleServices)
	if !ok {
		t.Fatal("leadsTo returns no TailscaleServices")
	}
	if !same(o, previous) {
		t.Error("same(...): want true for equal objects")
	}
	previous.Status = gatewayv1alpha1.TailscaleServicesStatus{}
	if same(previous, o) {
		t.Error("same(...): want false for another DNS name in the status")
	}
}

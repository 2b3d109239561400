// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// routeTo returns a route of any kind to a port of a TailscaleEndpoints.
func routeTo(kind string, port int32) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: %s
metadata: {name: edge}
spec:
  parentRefs: [{name: gw}]
  rules:
  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleEndpoints, name: edge, port: %d}]
`, kind, port)
}

func TestEndpoints(t *testing.T) {
	at := func(port int32) []ir.Endpoint { return append(pods(port, "10.1.0.1"), draining(port, "10.1.0.3")) }
	outliers := &ir.OutlierDetection{Consecutive5xx: 3, ConsecutiveGatewayFailure: 3, Interval: 30 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionPercent: 50}
	all := []string{endpointsEdge, proxySetEdge, sliceEdge}
	cases := map[string]struct {
		reason  string
		kind    string
		port    int32
		objects []string
		want    ir.Target
		problem string
	}{
		"Weights": {
			reason:  "Endpoints of a port should get traffic by their weights, and the first health check should apply to all.",
			kind:    "TCPRoute",
			port:    5432,
			objects: all,
			want: ir.Target{
				Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers, HealthCheck: &ir.HealthCheck{Interval: 7 * time.Second, Timeout: 3 * time.Second, Healthy: 2, Unhealthy: 3}},
				Localities: []ir.Locality{
					{Name: "db/5432", Proxied: true, Weight: 3, Endpoints: at(10001)},
					{Name: "db2/5432", Proxied: true, Weight: 1, Endpoints: at(10002)},
				},
				Candidates: []ir.Candidate{
					{Origin: &ir.Origin{Source: "db/5432"}, Address: ir.Address{Host: "10.1.0.1", Port: 10001}, Weight: 1},
					{Origin: &ir.Origin{Source: "db2/5432"}, Address: ir.Address{Host: "10.1.0.1", Port: 10002}, Weight: 1},
				},
			},
		},
		"UDP": {
			reason:  "The same port of UDP should be another target, without health checks, which Envoy does not have for UDP.",
			kind:    "UDPRoute",
			port:    53,
			objects: all,
			want:    ir.Target{Shape: ir.Shape{HealthThreshold: 70}, Localities: []ir.Locality{{Name: "dns/53/udp", Proxied: true, Weight: 1, Endpoints: at(10003)}}},
		},
		"TCPBesideUDP": {
			reason:  "A TCP port should not be the UDP port of the same number.",
			kind:    "TLSRoute",
			port:    53,
			objects: all,
			want:    ir.Target{Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers}, Localities: []ir.Locality{{Name: "dns/53", Proxied: true, Weight: 1, Endpoints: at(10004)}}},
		},
		"HTTPS": {
			reason:  "Envoy should use TLS to an HTTPS endpoint, with its name in the tailnet.",
			kind:    "HTTPRoute",
			port:    443,
			objects: all,
			want: ir.Target{
				Shape:      ir.Shape{HealthThreshold: 70, OutlierDetection: outliers, TLS: &ir.UpstreamTLS{ServerName: "api.tail1.ts.net"}},
				Localities: []ir.Locality{{Name: "api/443", Proxied: true, Weight: 1, Endpoints: at(10005)}},
			},
		},
		"HTTPSAddressAndName": {
			reason:  "An address beside the name should not change the TLS settings.",
			kind:    "HTTPRoute",
			port:    443,
			objects: []string{strings.ReplaceAll(endpointsEdge, "tailscaleFQDN:", "tailscaleIP: 100.64.0.9, tailscaleFQDN:"), proxySetEdge, sliceEdge},
			want: ir.Target{
				Shape:      ir.Shape{HealthThreshold: 70, OutlierDetection: outliers, TLS: &ir.UpstreamTLS{ServerName: "api.tail1.ts.net"}},
				Localities: []ir.Locality{{Name: "api/443", Proxied: true, Weight: 1, Endpoints: at(10005)}},
			},
		},
		"HTTPSOnL4": {
			reason:  "An L4 route should pass on the client's TLS.",
			kind:    "TCPRoute",
			port:    443,
			objects: all,
			want:    ir.Target{Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers}, Localities: []ir.Locality{{Name: "api/443", Proxied: true, Weight: 1, Endpoints: at(10005)}}},
		},
		"GRPCRoute": {
			reason:  "A GRPCRoute should use HTTP/2.",
			kind:    "GRPCRoute",
			port:    5432,
			objects: []string{strings.ReplaceAll(endpointsEdge, ", healthCheck: {interval: 7s}", ""), proxySetEdge},
			want: ir.Target{
				Shape:      ir.Shape{HealthThreshold: 70, OutlierDetection: outliers, HTTP2: true},
				Localities: []ir.Locality{{Name: "db/5432", Proxied: true, Weight: 3}, {Name: "db2/5432", Proxied: true, Weight: 1}},
			},
			problem: "no egress proxy is ready",
		},
		"Direct": {
			reason:  "A host outside the tailnet needs no proxy.",
			kind:    "HTTPRoute",
			port:    8443,
			objects: all,
			want:    ir.Target{Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers}, Localities: []ir.Locality{{Name: "ext/8443", Weight: 1, Endpoints: pods(8443, "192.0.2.7")}}},
		},
		"DirectByName": {
			reason:  "A name should have no endpoint until it is resolved, and its protocol should apply.",
			kind:    "HTTPRoute",
			port:    9000,
			objects: all,
			want:    ir.Target{Pending: true, Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers, HTTP2: true}, Localities: []ir.Locality{{Name: "named/9000", Weight: 1}}},
			problem: "the address of api.example.com is not known",
		},
		"NoPort": {
			reason:  "A port that no endpoint has should count as missing.",
			kind:    "HTTPRoute",
			port:    1,
			objects: all,
			want:    ir.Target{Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers}, Missing: true},
			problem: "has no endpoint with port 1 of TCP",
		},
		"NotOfAttachments": {
			reason:  "Proxies for the failover of a service should not be endpoints.",
			kind:    "HTTPRoute",
			port:    80,
			objects: append([]string{attachmentWeb}, all...),
			want:    ir.Target{Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers}, Missing: true},
			problem: "has no endpoint with port 80 of TCP",
		},
		"NoObject": {
			reason:  "A missing object should be reported.",
			kind:    "HTTPRoute",
			port:    1,
			want:    ir.Target{Missing: true},
			problem: "TailscaleEndpoints shop/edge does not exist",
		},
		"NoProxySet": {
			reason:  "The reference should be valid before the proxies exist.",
			kind:    "HTTPRoute",
			port:    443,
			objects: []string{endpointsEdge},
			want:    ir.Target{Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers}},
			problem: "has no proxies yet",
		},
		"MixedProtocols": {
			reason:  "One cluster cannot use TLS to some endpoints only.",
			kind:    "HTTPRoute",
			port:    5432,
			objects: []string{strings.ReplaceAll(endpointsEdge, ", healthCheck: {interval: 7s}", ""), strings.Replace(proxySetEdge, "db/5432, port: 5432, protocol: TCP", "db/5432, port: 5432, protocol: HTTPS", 1), sliceEdge},
			want:    ir.Target{Shape: ir.Shape{HealthThreshold: 70, OutlierDetection: outliers}},
			problem: "some endpoints of port 5432 speak HTTPS and others do not",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, append([]string{routeTo(tc.kind, tc.port)}, tc.objects...)...)
			tc.want.Key = ir.TargetKey{Kind: ir.TargetEndpoints, Namespace: "shop", Name: "edge", Port: tc.port, Protocol: ir.RouteKinds[tc.kind].Protocol()}
			got := s.Target(tc.want.Key)
			if got == nil {
				t.Fatalf("%s\nno target", tc.reason)
			}
			if (tc.problem == "") != (got.Problem == "") || !strings.Contains(got.Problem, tc.problem) {
				t.Errorf("%s\nproblem: want %q in %q", tc.reason, tc.problem, got.Problem)
			}
			tc.want.Problem, tc.want.Transport = got.Problem, tc.want.Shape.Transport()
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

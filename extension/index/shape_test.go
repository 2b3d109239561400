// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	tlsPolicy = `
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: web, creationTimestamp: "2026-01-02T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web}]
  validation: {hostname: web.example.com, wellKnownCACertificates: System}
`
	tlsPolicyOfPort = `
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: web-80, creationTimestamp: "2026-01-03T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, sectionName: "80"}]
  validation: {hostname: port.example.com, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}
`
	// certificateCA is the certificate of an authority, whose key nobody has.
	certificateCA = `-----BEGIN CERTIFICATE-----
MIIBQTCB56ADAgECAgEBMAoGCCqGSM49BAMCMA8xDTALBgNVBAMTBHRlc3QwIBcN
NzAwMTAxMDAwMDAwWhgPMjA5NjEwMDIwNzA2NDBaMA8xDTALBgNVBAMTBHRlc3Qw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATUEcFgsDLWHpa0TC3DM3bHFuQriHYw
LJvFbIQmgiLIpDamWBTmS2DIE2q3JWAM71n+8WmXFO86FLVh/ZGdTv6BozIwMDAP
BgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBTzYscgQOxCck7GVBMXHAIA3NPluTAK
BggqhkjOPQQDAgNJADBGAiEA8BuEhNNmYJZKK0PqxnLSNHybZ3lszFf0bsl2PT0N
JVwCIQDa/rqWY9Tml8vdKD8ZiDDPTCp8G5CaAihAWmTnsSNpLA==
-----END CERTIFICATE-----
`
)

// configMapCA is a ConfigMap with the certificate.
var (
	certificateInYAML = strings.ReplaceAll(certificateCA, "\n", `\n`)
	configMapCA       = `
apiVersion: v1
kind: ConfigMap
metadata: {name: ca}
data: {ca.crt: "` + certificateInYAML + `"}
`
)

func TestServicesShape(t *testing.T) {
	outliers := &ir.OutlierDetection{Consecutive5xx: 3, ConsecutiveGatewayFailure: 3, Interval: 30 * time.Second, BaseEjectionTime: 30 * time.Second, MaxEjectionPercent: 50}
	connect := &ir.HealthCheck{Interval: 5 * time.Second, Timeout: 2 * time.Second, Healthy: 1, Unhealthy: 2}
	h2c := "apiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec: {ports: [{port: 8080, appProtocol: kubernetes.io/h2c}]}\n"
	balanced := func(lb string) string {
		return services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], loadBalancing: {` + lb + `}}`)
	}
	cases := map[string]struct {
		reason  string
		objects []string
		want    ir.Shape
		problem string
	}{
		"Nothing": {
			reason:  "An object without settings should get connection checks, and Envoy Gateway's load balancer.",
			objects: []string{servicesWeb},
			want:    ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers},
		},
		"Defaults": {
			reason:  "An enabled health check should request /health of the backend's host name, with the schema's defaults.",
			objects: []string{balanced("healthCheck: {enabled: true}")},
			want: ir.Shape{
				LoadBalancer: ir.RoundRobin, HealthThreshold: 70, OutlierDetection: outliers,
				HealthCheck: &ir.HealthCheck{Path: "/health", Host: "app.shop.svc", Interval: 10 * time.Second, Timeout: 3 * time.Second, Healthy: 2, Unhealthy: 3},
			},
		},
		"All": {
			reason: "All settings should apply, and the thresholds of failoverPolicy should take precedence over those of healthCheck.",
			objects: []string{balanced(`strategy: least-connections, healthCheck: {enabled: true, path: /up, interval: 1s, timeout: 2s, healthyThreshold: 3, unhealthyThreshold: 4},
  outlierDetection: {consecutive5xx: 5, consecutiveGatewayFailure: 6, interval: 7s, baseEjectionTime: 8s, maxEjectionPercent: 9, splitExternalLocalOriginErrors: false},
  failoverPolicy: {healthThreshold: 40, healthyThreshold: 8, unhealthyThreshold: 9}`)},
			want: ir.Shape{
				LoadBalancer: ir.LeastRequest, HealthThreshold: 40,
				HealthCheck:      &ir.HealthCheck{Path: "/up", Host: "app.shop.svc", Interval: time.Second, Timeout: 2 * time.Second, Healthy: 8, Unhealthy: 9},
				OutlierDetection: &ir.OutlierDetection{Consecutive5xx: 5, ConsecutiveGatewayFailure: 6, Interval: 7 * time.Second, BaseEjectionTime: 8 * time.Second, MaxEjectionPercent: 9},
			},
		},
		"Limits": {
			reason:  "A probe should not take longer than the limit, and not begin more often.",
			objects: []string{balanced("healthCheck: {enabled: true, interval: 1ms, timeout: 1h}")},
			want: ir.Shape{
				LoadBalancer: ir.RoundRobin, HealthThreshold: 70, OutlierDetection: outliers,
				HealthCheck: &ir.HealthCheck{Path: "/health", Host: "app.shop.svc", Interval: time.Second, Timeout: 10 * time.Second, Healthy: 2, Unhealthy: 3},
			},
		},
		"Off": {
			reason:  "A disabled health check should be left out.",
			objects: []string{balanced("healthCheck: {enabled: false}")},
			want:    ir.Shape{LoadBalancer: ir.RoundRobin, HealthThreshold: 70, OutlierDetection: outliers},
		},
		"H2C": {
			reason:  "A Service with appProtocol h2c should get HTTP/2.",
			objects: []string{servicesWeb, h2c},
			want:    ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers, HTTP2: true},
		},
		"TLS": {
			reason:  "A BackendTLSPolicy should apply to our kinds too.",
			objects: []string{servicesWeb, serviceApp, sliceApp, tlsPolicy},
			want:    ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers, TLS: &ir.UpstreamTLS{ServerName: "web.example.com"}},
		},
		"TLSOfPort": {
			reason:  "A policy for the port should take precedence over an older one for all ports.",
			objects: []string{servicesWeb, serviceApp, sliceApp, tlsPolicy, tlsPolicyOfPort, configMapCA},
			want:    ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers, TLS: &ir.UpstreamTLS{ServerName: "port.example.com", CA: certificateCA}},
		},
		"TLSOlder": {
			reason:  "The older of two policies for all ports should apply.",
			objects: []string{servicesWeb, serviceApp, sliceApp, tlsPolicy, strings.NewReplacer("name: web, creation", "name: aaa, creation", "2026-01-02", "2026-01-01", "web.example", "old.example").Replace(tlsPolicy)},
			want:    ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers, TLS: &ir.UpstreamTLS{ServerName: "old.example.com"}},
		},
		"TLSAltNames": {
			reason:  "Subject alternative names should apply.",
			objects: []string{servicesWeb, serviceApp, sliceApp, strings.Replace(tlsPolicy, "System", "System, subjectAltNames: [{type: Hostname, hostname: a.example.com}, {type: URI, uri: \"spiffe://b\"}]", 1)},
			want: ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers, TLS: &ir.UpstreamTLS{
				ServerName: "web.example.com", AltNames: []ir.AltName{{Value: "a.example.com"}, {URI: true, Value: "spiffe://b"}},
			}},
		},
		"RemoteTLS": {
			reason: "TLS to proxies of other clusters should use the service's DNS name.",
			objects: []string{
				services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], tls: {}}`), proxySetEdge, sliceEdge,
				strings.ReplaceAll(attachmentWeb, "  ports:", "  dnsName: web.example.ts.net.\n  ports:"),
			},
			want: ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers, RemoteTLS: &ir.UpstreamTLS{ServerName: "web.example.ts.net"}},
		},
		"RemoteTLSOfPolicy": {
			reason: "A BackendTLSPolicy should apply to all endpoints.",
			objects: []string{
				services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], tls: {}}`), proxySetEdge, sliceEdge,
				strings.ReplaceAll(attachmentWeb, "  ports:", "  dnsName: web.example.ts.net.\n  ports:"), tlsPolicy,
			},
			want: ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers, TLS: &ir.UpstreamTLS{ServerName: "web.example.com"}},
		},
		"TLSLargeCA": {
			reason:  "With more certificates than the limit nothing should be sent.",
			objects: []string{servicesWeb, serviceApp, sliceApp, tlsPolicyOfPort, strings.Replace(configMapCA, certificateInYAML, strings.Repeat("x", 1<<19), 1)},
			want:    ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers},
			problem: "names ConfigMap ca, which cannot be used, under ca.crt: it has more than 64 KiB of certificates",
		},
		"TLSWithoutCA": {
			reason:  "Without the CA certificate nothing should be sent, instead of plain text.",
			objects: []string{servicesWeb, serviceApp, sliceApp, tlsPolicyOfPort, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ca}\n"},
			want:    ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers},
			problem: "names ConfigMap ca, which has no key ca.crt",
		},
		"TLSUnknownCA": {
			reason:  "Nor should anything be sent while it is not known.",
			objects: []string{servicesWeb, serviceApp, sliceApp, tlsPolicyOfPort},
			want:    ir.Shape{HealthThreshold: 70, HealthCheck: connect, OutlierDetection: outliers},
			problem: "names ConfigMap ca, which is not known yet",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, append([]string{routeToWeb}, tc.objects...)...)
			got := s.Target(ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP})
			if diff := cmp.Diff(tc.want, got.Shape); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
			if tc.problem != "" && (!strings.Contains(got.Problem, tc.problem) || len(got.Localities) > 0) {
				t.Errorf("%s\nwant problem %q and no endpoints, got %q and %v", tc.reason, tc.problem, got.Problem, got.Localities)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"strings"
	"testing"
)

const (
	// kindsExample has a route of each kind, which a TailscaleGateway shares one by one.
	kindsExample = "examples/shared-route-kinds.yaml"
	kinds        = "kinds"
	secureHost   = "secure.example.com"
)

// kindsBackends speak gRPC and TLS.
const kindsBackends = `apiVersion: v1
kind: Pod
metadata: {name: health, namespace: quickstart, labels: {app: health}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: health
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [grpc-health-checking]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: health, namespace: quickstart}
spec:
  selector: {app: health}
  ports: [{name: grpc, port: 5000}, {name: udp, port: 5000, protocol: UDP}]
---
apiVersion: v1
kind: Pod
metadata: {name: secure, namespace: quickstart, labels: {app: secure}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: tls, secret: {secretName: secure}}]
  containers:
  - name: secure
    image: registry.k8s.io/e2e-test-images/agnhost:2.53
    args: [netexec, --http-port=8443, --udp-port=-1, --tls-cert-file=/tls/tls.crt, --tls-private-key-file=/tls/tls.key]
    volumeMounts: [{name: tls, mountPath: /tls}]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: v1
kind: Service
metadata: {name: secure, namespace: quickstart}
spec:
  selector: {app: secure}
  ports: [{port: 443, targetPort: 8443}]
`

// sharesEachKind asks for what is behind a route of each kind, by its own Tailscale
// Service.
func sharesEachKind(t *testing.T) {
	cert, key := certificate(t, secureHost)
	kubectl(t, "create", "secret", "tls", "secure", "-n", namespace, "--cert="+cert, "--key="+key)
	apply(t, kindsBackends)
	kubectl(t, "apply", "-f", kindsExample)
	at := func(route, port string) string {
		return strings.TrimSuffix(strings.TrimPrefix(tailnetOne.url(t, "route-"+route+"-"+namespace), "http://"), "/") + ":" + port
	}
	answeredAt(t, "http://"+at("page", "80")+"/", "web", patience)
	answeredAt(t, "http://"+at("bytes", "9000")+"/", "web", patience)
	for what, ask := range map[string]struct {
		want string
		args []string
	}{
		// TLS goes on to the pod, whose certificate it is.
		"the TLSRoute": {want: "secure", args: []string{"--cacert=" + cert, "--host=" + secureHost, "https://" + at("secure", "9443") + "/hostname"}},

		// A server of gRPC refuses GET in its own way.
		"the GRPCRoute": {want: "Grpc-Status: ", args: []string{"-i", "--header=Content-Type: application/grpc", "http://" + at("health", "80") + "/grpc.health.v1.Health/Check"}},
	} {
		eventually(t, patience, what, func() string {
			// Some answers are errors of HTTP.
			said, _ := labOutput(t, append([]string{"tailnet-curl", "--timeout=10s"}, ask.args...)...)
			if !strings.Contains(said, ask.want) {
				return "answered by " + said
			}
			return ""
		})
	}
	eventually(t, patience, "what is said of the UDPRoute", func() string {
		got := jsonpath(t, "tailscalegateways", kinds, `{.status.services[?(@.ready==false)].message}`)
		if !strings.HasPrefix(got, "A Tailscale Service has no ports of UDP") {
			return "it is " + got
		}
		return ""
	})
	conditionOf(t, "tailscalegateways", kinds, "ServicesReady", "True", "ServicesConfigured", patience)
	kubectl(t, "delete", "-f", kindsExample, "--timeout=3m")
	kubectl(t, "delete", "pod,service,secret", "health", "secure", "-n", namespace, "--ignore-not-found")
	goneFrom(t, namespace, kinds, "route-page", "route-bytes", "route-secure", "route-health")
}

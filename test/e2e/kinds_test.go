// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && tailnets

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	// kindsExample has a route of each kind. A TailscaleGateway shares each of them.
	kindsExample = "examples/shared-route-kinds.yaml"
	kinds        = "kinds"
	secureHost   = "secure.example.com"

	// healthPort is the port of the gRPC server on the cluster's node.
	healthPort = 15050
)

// kindsBackends speak gRPC and TLS. The gRPC server is a process on the cluster's node, because no
// image of the lab has one: %[1]s is the node's address, and %[2]d the port.
const kindsBackends = `apiVersion: v1
kind: Service
metadata: {name: health, namespace: quickstart}
spec:
  ports: [{name: grpc, port: 5000, targetPort: %[2]d}, {name: udp, port: 5000, protocol: UDP}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: health-node, namespace: quickstart, labels: {kubernetes.io/service-name: health}}
addressType: IPv4
ports: [{name: grpc, port: %[2]d, protocol: TCP}]
endpoints: [{addresses: [%[1]q], conditions: {ready: true}}]
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

// sharesEachKind sends requests to the backend of a route of each kind by the route's Tailscale
// Service.
func sharesEachKind(t *testing.T) {
	cert, key := certificate(t, secureHost)
	kubectl(t, "create", "secret", "tls", "secure", "-n", namespace, "--cert="+cert, "--key="+key)
	node := kubectl(t, "get", "nodes", `-o=jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	apply(t, fmt.Sprintf(kindsBackends, node, healthPort))
	servesHealth(t, node)
	kubectl(t, "apply", "-f", kindsExample)
	at := func(route, port string) string {
		return strings.TrimSuffix(strings.TrimPrefix(tailnetOne.url(t, "route-"+route+"-"+namespace), "http://"), "/") + ":" + port
	}
	answeredAt(t, "http://"+at("page", "80")+"/", "web", patience)
	answeredAt(t, "http://"+at("bytes", "9000")+"/", "web", patience)
	for description, ask := range map[string]struct {
		want string
		args []string
	}{
		// Envoy passes TLS through to the pod, whose certificate the client sees.
		"the TLSRoute": {want: "secure", args: []string{"--cacert=" + cert, "--host=" + secureHost, "https://" + at("secure", "9443") + "/hostname"}},
	} {
		eventually(t, patience, description, func() string {
			// Some responses are HTTP errors.
			response, _ := labOutput(t, append([]string{"tailnet-curl", "--timeout=10s"}, ask.args...)...)
			if !strings.Contains(response, ask.want) {
				return "the response is " + response
			}
			return ""
		})
	}
	eventually(t, patience, "the GRPCRoute", func() string { return checks(t, at("health", "80")) })
	eventually(t, patience, "message of the UDPRoute", func() string {
		got := jsonpath(t, "tailscalegateways", kinds, `{.status.services[?(@.ready==false)].message}`)
		if !strings.HasPrefix(got, "A Tailscale Service has no ports of UDP") {
			return "the message is " + got
		}
		return ""
	})
	conditionOf(t, "tailscalegateways", kinds, "ServicesReady", "True", "ServicesConfigured", patience)
	kubectl(t, "delete", "-f", kindsExample, "--timeout=3m")
	kubectl(t, "delete", "pod,service,secret,endpointslice", "health", "health-node", "secure", "-n", namespace, "--ignore-not-found")
	goneFrom(t, namespace, kinds, "route-page", "route-bytes", "route-secure", "route-health")
}

// servesHealth runs a gRPC server on the cluster's node until the test ends.
func servesHealth(t *testing.T, node string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "grpchealth")
	if err := stream(t.Context(), "go", "build", "-o", program, "./test/e2e/internal/grpchealth"); err != nil {
		t.Fatalf("cannot build the gRPC server: %v", err)
	}
	cmd := exec.Command(lab, "exec", program, fmt.Sprintf("%s:%d", node, healthPort))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("cannot serve gRPC: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // The server was interrupted.
	})
}

// checks checks the health of a gRPC server in the tailnet, and describes any response other than
// SERVING.
func checks(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialByClient))
	if err != nil {
		t.Fatalf("cannot create a gRPC client: %v", err)
	}
	defer c.Close()
	response, err := healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil || response.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return fmt.Sprintf("the response is %v, %v", response, err)
	}
	return ""
}

// dialByClient dials an address of the tailnet through the lab's client.
func dialByClient(_ context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	// The command ends when the connection is closed.
	cmd := exec.Command(lab, "tailscale", "nc", host, port)
	cmd.Stdin, cmd.Stdout = theirs, theirs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		_ = theirs.Close()
	}()
	return ours, nil
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/certificates"
	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
)

// patience is the time limit of everything that takes a moment.
const patience = time.Minute

const route = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: gw}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /}}]
    backendRefs:
    - {group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80}
---
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: web, namespace: shop}
spec:
  selector: {}
  vipService: {ports: ["tcp:80"]}
  backends:
  - {name: web, port: 8080}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  ports: [{name: http, port: 8080, targetPort: 8080}]
`

func slice(address string) string {
	return `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: ["` + address + `"], conditions: {ready: true}}]
`
}

// write replaces a file atomically: a reader sees either version.
func write(t *testing.T, dir, name, content string) {
	t.Helper()
	whole := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(whole, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(whole, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestRun runs the whole extension against clients that act as Envoy Gateway and Envoy, with a
// folder in place of the API server.
func TestRun(t *testing.T) {
	dir, sockets := t.TempDir(), t.TempDir()
	write(t, dir, "route.yaml", route)
	write(t, dir, "slice.yaml", slice("10.0.0.1"))
	hooks, endpoints, observe := filepath.Join(sockets, "h"), filepath.Join(sockets, "e"), filepath.Join(sockets, "o")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{
			HooksAddress:   "unix:" + hooks,
			EDSAddress:     "unix:" + endpoints,
			Certificates:   certificates.Options{Target: "unix:" + endpoints},
			ObserveAddress: "unix:" + observe,
			FromFiles:      dir,
			Drain:          100 * time.Millisecond,
		}, logging.NewNopLogger())
	}()
	calls, stop := context.WithTimeout(t.Context(), patience)
	defer stop()

	// Envoy Gateway calls the hook with the route's cluster.
	conn := dial(t, "unix:"+hooks)
	if _, err := healthpb.NewHealthClient(conn).Check(calls, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	name := "httproute/shop/web/rule/0"
	resp, err := pb.NewEnvoyGatewayExtensionClient(conn).PostTranslateModify(calls, &pb.PostTranslateModifyRequest{
		Clusters: []*clusterv3.Cluster{{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}},
		Routes: []*routev3.RouteConfiguration{{VirtualHosts: []*routev3.VirtualHost{{
			Name:    "web",
			Domains: []string{"*"},
			Routes: []*routev3.Route{{
				Name:   name + "/match/0/*",
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: name}}},
			}},
		}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(resp.GetClusters()); n != 1 {
		t.Fatalf("want one cluster, got %d", n)
	}
	shared := resp.GetClusters()[0]
	if diff := cmp.Diff("tailscale/services/shop/web/80/http", shared.GetName()); diff != "" {
		t.Fatalf("cluster: -want, +got:\n%s", diff)
	}

	// Envoy subscribes to the endpoints of that cluster, and gets a change.
	stream, err := endpointservice.NewEndpointDiscoveryServiceClient(dial(t, "unix:"+endpoints)).DeltaEndpoints(calls)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: eds.TypeURL, ResourceNamesSubscribe: []string{shared.GetEdsClusterConfig().GetServiceName()}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10.0.0.1"}, receive(t, stream)); diff != "" {
		t.Errorf("endpoints: -want, +got:\n%s", diff)
	}
	write(t, dir, "slice.yaml", slice("10.0.0.200"))
	if diff := cmp.Diff([]string{"10.0.0.200"}, receive(t, stream)); diff != "" {
		t.Errorf("endpoints after a change: -want, +got:\n%s", diff)
	}
	if got := ready(calls, t, observe); got != "200 OK" {
		t.Errorf("want the extension ready, got %q", got)
	}

	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the extension should shut down without an error: %v", err)
		}
	case <-time.After(patience):
		t.Error("the extension does not shut down")
	}
}

// receive returns the addresses of one response.
func receive(t *testing.T, stream endpointservice.EndpointDiscoveryService_DeltaEndpointsClient) []string {
	t.Helper()
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, res := range r.GetResources() {
		a := &endpointv3.ClusterLoadAssignment{}
		if err := res.GetResource().UnmarshalTo(a); err != nil {
			t.Fatal(err)
		}
		for _, l := range a.GetEndpoints() {
			for _, e := range l.GetLbEndpoints() {
				out = append(out, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
			}
		}
	}
	return out
}

// ready returns the answer of /ready on a socket.
func ready(ctx context.Context, t *testing.T, socket string) string {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://extension/ready", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.Status
}

func TestRunFails(t *testing.T) {
	dir := t.TempDir()
	cases := map[string]struct {
		reason  string
		options Options
	}{
		"NoCertificate": {
			reason:  "A missing certificate should be an error at the start.",
			options: Options{FromFiles: dir, Certificates: certificates.Options{EDS: certificates.ServerOptions{TLS: dir}}},
		},
		"NotInPod": {
			reason:  "Without a kubeconfig the error should mention that the extension must run in a pod.",
			options: Options{},
		},
		"NoKubeconfig": {
			reason:  "A missing kubeconfig should be an error.",
			options: Options{Kubeconfig: filepath.Join(dir, "none")},
		},
		"Address": {
			reason:  "An unusable address should be an error.",
			options: Options{FromFiles: dir, ObserveAddress: "unix:" + dir},
		},
		"Folder": {
			reason: "A missing folder should be an error.",
			options: Options{
				FromFiles:      filepath.Join(dir, "none"),
				ObserveAddress: "unix:" + filepath.Join(dir, "o"),
				HooksAddress:   "unix:" + filepath.Join(dir, "h"),
				EDSAddress:     "unix:" + filepath.Join(dir, "e"),
			},
		},
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Run(t.Context(), tc.options, logging.NewNopLogger()); err == nil {
				t.Errorf("\n%s\nRun(...): want an error", tc.reason)
			}
		})
	}
}

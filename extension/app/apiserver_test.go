// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// crd stands for the CRD that Crossplane makes of our XRD.
const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tailscaleservices.gateway.tailscale.com}
spec:
  group: gateway.tailscale.com
  names: {kind: TailscaleServices, plural: tailscaleservices, singular: tailscaleservices, listKind: TailscaleServicesList}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// startAPIServer starts an API server with the CRDs of Gateway API and those in further files.
func startAPIServer(ctx context.Context, t *testing.T, crds ...string) *apiserver.Server {
	t.Helper()
	server, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	gateway, err := apiserver.GatewayAPICRDs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{Paths: append(crds, gateway), ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
	return server
}

// TestAPIServer runs the extension against a real API server, with a kind that is installed later.
func TestAPIServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	server := startAPIServer(ctx, t)
	kubeconfig, err := server.WriteKubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(route, "\n---\n")
	objecttest.Apply(ctx, t, c, docs[0]+"\n---\n"+docs[2]+"\n---\n"+slice("10.0.0.1"))

	sockets := t.TempDir()
	endpoints, observe := filepath.Join(sockets, "e"), filepath.Join(sockets, "o")
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- Run(running, Options{
			HooksAddress:   "unix:" + filepath.Join(sockets, "h"),
			EDSAddress:     "unix:" + endpoints,
			ObserveAddress: "unix:" + observe,
			Kubeconfig:     kubeconfig,
		}, logging.NewNopLogger())
	}()

	stream, err := endpointservice.NewEndpointDiscoveryServiceClient(dial(t, "unix:"+endpoints)).DeltaEndpoints(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: eds.TypeURL, ResourceNamesSubscribe: []string{"tailscale/services/shop/web/80/http"}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string(nil), receive(t, stream)); diff != "" {
		t.Errorf("a missing target: -want, +got:\n%s", diff)
	}
	if got := ready(ctx, t, observe); got != "200 OK" {
		t.Errorf("want the extension ready although a kind is missing, got %q", got)
	}

	// The kind is installed late, as when Crossplane installs the configuration after the
	// extension.
	late := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(late, []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{Paths: []string{late}}); err != nil {
		t.Fatal(err)
	}
	objecttest.Apply(ctx, t, c, docs[1])
	if diff := cmp.Diff([]string{"10.0.0.1"}, receive(t, stream)); diff != "" {
		t.Errorf("an existing target: -want, +got:\n%s", diff)
	}

	start := time.Now()
	objecttest.Apply(ctx, t, c, slice("10.0.0.2"))
	if diff := cmp.Diff([]string{"10.0.0.2"}, receive(t, stream)); diff != "" {
		t.Errorf("an endpoint that moved: -want, +got:\n%s", diff)
	}
	t.Logf("a changed EndpointSlice reached the stream after %s", time.Since(start).Round(time.Millisecond))

	stop()
	if err := <-done; err != nil {
		t.Errorf("the extension should shut down without an error: %v", err)
	}
}

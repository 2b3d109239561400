//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// anyHost is the backend of a user's route without hostnames.
const anyHost = "192.0.2.11:8000"

// TestGeneratedRoutes checks that generated routes answer through a real Envoy, and follow the
// policies of the Gateway.
func TestGeneratedRoutes(t *testing.T) { //nolint:tparallel // Its steps share one environment.
	t.Parallel()
	w := newEnvironment(t)
	w.serve(t, "192.0.2.20:10030", returnRequest())
	w.apply(t, "generated.yaml")
	w.answers(t, "web.tailscale.local/tailscale/web/own", "192.0.2.10:8000")
	w.notFound(t, "web.tailscale.local")
	w.answers(t, "late.tailscale.local/tailscale/late/status", anyHost)

	w.discovered(t, `{
discoveredEndpoints: [{name: svc-late, source: Services, tailscaleFQDN: late.prod.ts.net}, {name: svc-web, source: Services, tailscaleFQDN: web.prod.ts.net}],
egressTargets: [{name: svc-late/80, address: "100.100.0.2:80", protocol: HTTP, readyProxies: 1, service: "found-web:80"}, {name: svc-web/80, address: "100.100.0.1:80", protocol: HTTP, readyProxies: 1, service: "found-web:80"}]}`)
	w.answers(t, "web.tailscale.local/tailscale/web/status", "web.prod.ts.net/status")
	w.answers(t, "web.tailscale.local/tailscale/web", "web.prod.ts.net/")
	w.answers(t, "app.prod.gateway.local/any", "192.0.2.10:8000")
	w.until(t, func(ctx context.Context) error {
		r, err := w.gatewayReport(ctx)
		if err != nil {
			return err
		}
		if n := len(r.Spec.GeneratedRoutes); n != 5 {
			return errors.Errorf("the report has %d generated routes, want 5", n)
		}
		for _, g := range r.Spec.GeneratedRoutes {
			if g.State != tailnetv1alpha1.GeneratedRouteAccepted {
				return errors.Errorf("%s is %s: %s", g.Hostname, g.State, g.Message)
			}
		}
		if len(r.Spec.Routes) != 3 || r.Spec.Routes[2].Name != "own" || r.Spec.Extension.Hooks == nil {
			return errors.Errorf("the report has %v and %v", r.Spec.Routes, r.Spec.Extension)
		}
		return nil
	})

	t.Run("Precedence", func(t *testing.T) { generatedPrecedence(t, w) })
	t.Run("GatewayPolicies", func(t *testing.T) { generatedPolicies(t, w) })

	began := time.Now()
	// A route stays until a successful search no longer returns its service.
	w.discovered(t, `{
conditions: [{type: DiscoverySuccessful, status: "True", reason: Discovered, lastTransitionTime: "2026-01-02T03:04:05Z"}],
discoveredEndpoints: null, egressTargets: null}`)
	w.notFound(t, "web.tailscale.local")
	t.Logf("a service answered for %s after its last discovery", time.Since(began).Round(time.Millisecond))
	w.answers(t, "web.tailscale.local/tailscale/web/own", "192.0.2.10:8000")
	w.answers(t, "late.tailscale.local/tailscale/late/status", anyHost)
}

// generatedPrecedence checks that generated routes take precedence over a user's route for any
// host, and never over a more specific one of any kind.
func generatedPrecedence(t *testing.T, w *environment) {
	w.answers(t, "late.tailscale.local/tailscale/late/status", "late.prod.ts.net/status")
	w.answers(t, "elsewhere.example.com/tailscale/late/status", anyHost)
	w.answers(t, "web.tailscale.local/tailscale/web/own/page", "192.0.2.10:8000")
	// The generated route has all paths of the host.
	w.until(t, w.gets("late.tailscale.local", "other", http.StatusNotFound))

	const host = "app.prod.gateway.local"
	w.answersGRPC(t, host, "192.0.2.10:8001")
	w.answers(t, host+"/any", "192.0.2.10:8000")
	rpc := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GRPCRoute"}}
	rpc.SetNamespace("default")
	rpc.SetName("rpc")
	w.patch(t, rpc, `{"spec": {"rules": [{"backendRefs": [{"name": "rpc", "port": 80}]}]}}`)
	w.until(t, func(ctx context.Context) error {
		r, err := w.gatewayReport(ctx)
		if err != nil {
			return err
		}
		const want = "GRPCRoute default/rpc has app.prod.gateway.local/ already; no route is generated for Service default/app"
		for _, g := range r.Spec.GeneratedRoutes {
			if g.Hostname == host && (g.State != tailnetv1alpha1.GeneratedRouteConflict || g.Message != want) {
				return errors.Errorf("%s is %s: %s", g.Hostname, g.State, g.Message)
			}
		}
		return nil
	})
	w.answersGRPC(t, host, "192.0.2.10:8001")
}

// generatedPolicies checks that policies of the Gateway apply to generated routes.
func generatedPolicies(t *testing.T, w *environment) {
	const host, path = "web.tailscale.local", "tailscale/web/status"
	cases := map[string]struct {
		kind, spec string
		want       int
	}{
		"SecurityPolicy":       {kind: "SecurityPolicy", spec: "authorization: {defaultAction: Deny}", want: http.StatusForbidden},
		"BackendTrafficPolicy": {kind: "BackendTrafficPolicy", spec: "rateLimit: {type: Local, local: {rules: [{limit: {requests: 1, unit: Hour}}]}}", want: http.StatusTooManyRequests},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: %s
metadata: {name: gw, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  %s
`, tc.kind, tc.spec), policy); err != nil {
				t.Fatal(err)
			}
			w.create(t, policy)
			w.until(t, w.gets(host, path, tc.want))
			w.remove(t, policy)
			w.answers(t, host+"/"+path, "web.prod.ts.net/status")
		})
	}
}

// returnRequest returns a handler that responds with the request's host and path.
func returnRequest() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, r.URL.Path) // The client may have gone.
	})
}

// discovered writes discovered services to the status of the TailscaleEndpoints.
func (w *environment) discovered(t *testing.T, status string) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("status: " + status))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleEndpointsKind))
	u.SetNamespace("default")
	u.SetName("gw-prod")
	if err := w.kube.Status().Patch(t.Context(), u, client.RawPatch(types.MergePatchType, raw)); err != nil {
		t.Fatal(err)
	}
}

// gatewayReport returns the TailscaleGateway's report.
func (w *environment) gatewayReport(ctx context.Context) (*tailnetv1alpha1.GatewayReport, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(tailnetv1alpha1.SchemeGroupVersion.WithKind(tailnetv1alpha1.GatewayReportKind))
	if err := w.kube.Get(ctx, types.NamespacedName{Namespace: "default", Name: names.GatewayReport("gw")}, u); err != nil {
		return nil, err
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	r := &tailnetv1alpha1.GatewayReport{}
	return r, yaml.Unmarshal(raw, r)
}

// gets returns a check that a path of a host returns a status.
func (w *environment) gets(host, path string, want int) func(context.Context) error {
	return func(ctx context.Context) error { return w.Gets(ctx, gateway+path, host, want) }
}

// notFound waits until no generated route answers for a host.
func (w *environment) notFound(t *testing.T, host string) {
	t.Helper()
	w.until(t, w.gets(host, "tailscale/web/status", http.StatusNotFound))
}

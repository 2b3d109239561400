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

// TestGeneratedRoutes shows that routes that are generated answer through a real Envoy,
// and keep to what people say of the Gateway.
func TestGeneratedRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(t, "192.0.2.20:10030", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, r.Host, r.URL.Path) // Who is gone needs no answer.
	}))
	w.apply(t, "generated.yaml")
	w.answers(t, "web.tailscale.local/tailscale/web/own", "192.0.2.10:8000")
	w.notFound(t, "web.tailscale.local")

	w.discovered(t, `{discoveredEndpoints: [{name: svc-web, source: Services, tailscaleFQDN: web.prod.ts.net}], egressTargets: [{name: svc-web/80, address: "100.100.0.1:80", protocol: HTTP, readyProxies: 1, service: "found-web:80"}]}`)
	w.answers(t, "web.tailscale.local/tailscale/web/status", "web.prod.ts.net/status")
	w.answers(t, "web.tailscale.local/tailscale/web", "web.prod.ts.net/")
	w.answers(t, "web.tailscale.local/tailscale/web/own/page", "192.0.2.10:8000")
	w.answers(t, "app.prod.gateway.local/any", "192.0.2.10:8000")
	w.until(t, func(ctx context.Context) error {
		r, err := w.gatewayReport(ctx)
		if err != nil {
			return err
		}
		if n := len(r.Spec.GeneratedRoutes); n != 2 {
			return errors.Errorf("the report tells of %d generated routes, not of 2", n)
		}
		for _, g := range r.Spec.GeneratedRoutes {
			if g.State != tailnetv1alpha1.GeneratedRouteAccepted {
				return errors.Errorf("%s is %s: %s", g.Hostname, g.State, g.Message)
			}
		}
		if len(r.Spec.Routes) != 1 || r.Spec.Routes[0].Name != "own" || r.Spec.Extension.Hooks == nil {
			return errors.Errorf("the report tells of %v and %v", r.Spec.Routes, r.Spec.Extension)
		}
		return nil
	})

	// What is said of the Gateway holds for generated routes.
	policy := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: closed, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  authorization: {defaultAction: Deny}
`), policy); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	w.until(t, w.gets("web.tailscale.local", "tailscale/web/status", http.StatusForbidden))
	if err := w.kube.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	w.answers(t, "web.tailscale.local/tailscale/web/status", "web.prod.ts.net/status")

	began := time.Now()
	w.discovered(t, `{discoveredEndpoints: null, egressTargets: null}`)
	w.notFound(t, "web.tailscale.local")
	t.Logf("what was not found any more answered for %s", time.Since(began).Round(time.Millisecond))
	w.answers(t, "web.tailscale.local/tailscale/web/own", "192.0.2.10:8000")
}

// discovered has the TailscaleEndpoints say what was found.
func (w *world) discovered(t *testing.T, status string) {
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

// gatewayReport of the TailscaleGateway.
func (w *world) gatewayReport(ctx context.Context) (*tailnetv1alpha1.GatewayReport, error) {
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

// gets returns a check that a path of a host is answered with a status.
func (w *world) gets(host, path string, want int) func(context.Context) error {
	return func(ctx context.Context) error { return w.Gets(ctx, gateway+path, host, want) }
}

// notFound waits until nothing generated answers for a host.
func (w *world) notFound(t *testing.T, host string) {
	t.Helper()
	w.until(t, w.gets(host, "tailscale/web/status", http.StatusNotFound))
}

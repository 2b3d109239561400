// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gateways

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// grpcRoutes returns the generated GRPCRoutes.
func (w *environment) grpcRoutes(ctx context.Context, t *testing.T) []gwapiv1.GRPCRoute {
	t.Helper()
	l := &gwapiv1.GRPCRouteList{}
	if err := w.kube.List(ctx, l, client.HasLabels{meta.LabelGenerated}); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

// TestSelectedRoutes checks routes to selected objects, and a generated GRPCRoute, on a real
// API server: routes that are written once are not written again.
func TestSelectedRoutes(t *testing.T) {
	w := newEnvironment(t, false)
	w.start(t, Options{})
	// With ingress the GRPCRoute gets a generated route as well.
	tailnet := strings.Replace(selects("{matchLabels: {expose: web}}"), "{egress:", "{ingress: "+defaultIngress+", egress:", 1)
	w.create(t, objects(t, gateway, userEndpoints, userServices,
		routeTo("GRPCRoute", "shop", "rpc", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: rpc, port: 90}]}]"))...)
	shared := objects(t, joins(tailnet))[0]
	w.create(t, shared)
	waits := " Pending Waiting for Envoy Gateway"
	w.waitForGenerated(t,
		"*/tailscale/api"+waits,
		"*/tailscale/nameless Refused It uses HTTPS, and the name in its certificate is unknown; set tailscaleFQDN",
		"*/tailscale/rpc Pending Waiting for proxies to carry traffic to it",
		"*/tailscale/secure"+waits,
		"*/tailscale/shop"+waits,
		"rpc.prod.gateway.local/"+waits,
	)
	grpcRoutes := w.grpcRoutes(t.Context(), t)
	if len(grpcRoutes) != 1 {
		t.Fatalf("%d GRPCRoutes are generated, want one", len(grpcRoutes))
	}
	grpcRoutes[0].Status.Parents = []gwapiv1.RouteParentStatus{{
		ParentRef: grpcRoutes[0].Spec.ParentRefs[0], ControllerName: "gateway.envoyproxy.io/gatewayclass-controller",
		Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Now()}},
	}}
	if err := w.kube.Status().Update(t.Context(), &grpcRoutes[0]); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, func(ctx context.Context) error {
		r, err := w.report(ctx)
		if err != nil {
			return err
		}
		for _, g := range r.Spec.GeneratedRoutes {
			if g.Kind == routes.KindGRPCRoute && g.State == "Accepted" {
				return nil
			}
		}
		return errors.Errorf("no GRPCRoute is reported as accepted: %v", r.Spec.GeneratedRoutes)
	})
	for _, r := range w.grpcRoutes(t.Context(), t) {
		if r.Generation != 1 {
			t.Errorf("%s was written %d times, want once", r.Name, r.Generation)
		}
	}
	routes := &gwapiv1.HTTPRouteList{}
	if err := w.kube.List(t.Context(), routes, client.HasLabels{meta.LabelGenerated}); err != nil {
		t.Fatal(err)
	}
	if len(routes.Items) != 3 {
		t.Errorf("%d HTTPRoutes are generated, want 3", len(routes.Items))
	}
	for _, r := range routes.Items {
		if r.Generation != 1 {
			t.Errorf("%s was written %d times, want once", r.Name, r.Generation)
		}
	}

	// All objects are deleted with the TailscaleGateway.
	if err := w.kube.Delete(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, func(ctx context.Context) error {
		if n := len(w.grpcRoutes(ctx, t)); n > 0 {
			return errors.Errorf("%d GRPCRoutes still exist", n)
		}
		return nil
	})
}

// TestLoopsFollow checks that a loop is detected when the DNS name of a service appears, and
// resolved when it disappears.
func TestLoopsFollow(t *testing.T) {
	w := newEnvironment(t, false)
	w.start(t, Options{})
	w.create(t, objects(t, gateway, found("prod", "True", "svc-front"))...)
	w.create(t, objects(t, joins(discovers("prod", "HTTP", defaultEgress)))...)
	w.waitForGenerated(t, "front.tailscale.local/tailscale/front Pending Waiting for Envoy Gateway")
	leads := objects(t, strings.Replace(leadsTo("web", "front"), "namespace: web", "namespace: shop", 1))[0]
	w.create(t, leads)
	w.waitForGenerated(t, "front.tailscale.local/tailscale/front Refused It leads to Gateway shop/web itself, which would create a routing loop; exclude it with excludePatterns of serviceDiscovery")
	if err := w.kube.Delete(t.Context(), leads); err != nil {
		t.Fatal(err)
	}
	w.waitForGenerated(t, "front.tailscale.local/tailscale/front Pending Waiting for Envoy Gateway")
}

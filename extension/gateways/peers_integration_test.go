// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gateways

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// TestPeersFollow checks that a TailscaleGateway with lower precedence takes over the address
// when the other's route is deleted, and yields it when that route returns.
func TestPeersFollow(t *testing.T) {
	w := newEnvironment(t, false)
	w.start(t, Options{})
	// Both may have the same creation time in seconds: then the name decides.
	older := objects(t, manifestFor(joins(discovers("dev", "HTTP", defaultEgress)), "shop", "other", 0))[0]
	w.create(t, objects(t, gateway, found("prod", "True", "nas"), manifestFor(found("dev", "True", "nas"), "shop", "other", 0))...)
	w.create(t, older)
	w.waitForOwner(t, "other")
	w.create(t, objects(t, joins(discovers("prod", "HTTP", defaultEgress)))...)
	const (
		conflict = "nas.tailscale.local/tailscale/nas Conflict The device nas of tailnet dev of TailscaleGateway shop/other has nas.tailscale.local/tailscale/nas already; no route is generated for the device nas of tailnet prod of TailscaleGateway shop/web"
		pending  = "nas.tailscale.local/tailscale/nas Pending Waiting for Envoy Gateway"
	)
	w.waitForGenerated(t, conflict)
	w.waitForOwner(t, "other")

	w.discover(t, "dev", "True")
	w.waitForGenerated(t, pending)
	w.waitForOwner(t, "web")

	w.discover(t, "dev", "True", "nas")
	w.waitForGenerated(t, conflict)
	w.waitForOwner(t, "other")

	if err := w.kube.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	w.waitForGenerated(t, pending)
	w.waitForOwner(t, "web")
}

// waitForOwner waits until the only generated route belongs to a TailscaleGateway.
func (w *environment) waitForOwner(t *testing.T, name string) {
	t.Helper()
	w.waitFor(t, func(ctx context.Context) error {
		l := &gwapiv1.HTTPRouteList{}
		if err := w.kube.List(ctx, l, client.HasLabels{meta.LabelGenerated}); err != nil {
			return err
		}
		if len(l.Items) != 1 || l.Items[0].Labels[meta.LabelGateway] != name {
			return errors.Errorf("%d routes, want one of %s", len(l.Items), name)
		}
		return nil
	})
}

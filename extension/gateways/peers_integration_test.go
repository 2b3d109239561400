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

// TestPeersFollow shows that of two TailscaleGateways the one that gave way takes its
// place when the other's route goes, and leaves it when that is back.
func TestPeersFollow(t *testing.T) {
	w := newWorld(t, false)
	w.control(t, Options{})
	// Made within one second its name decides.
	older := objects(t, madeFor(joins(discovers("dev", "HTTP", defaultEgress)), "shop", "other", 0))[0]
	w.create(t, objects(t, gateway, found("prod", "True", "nas"), madeFor(found("dev", "True", "nas"), "shop", "other", 0))...)
	w.create(t, older)
	w.has(t, "other")
	w.create(t, objects(t, joins(discovers("prod", "HTTP", defaultEgress)))...)
	const (
		conflict = "nas.tailscale.local/tailscale/nas Conflict The device nas of tailnet dev of TailscaleGateway shop/other has nas.tailscale.local/tailscale/nas already, so the device nas of tailnet prod of TailscaleGateway shop/web gets no route"
		pending  = "nas.tailscale.local/tailscale/nas Pending Waiting for Envoy Gateway"
	)
	w.find(t, conflict)
	w.has(t, "other")

	w.discover(t, "dev", "True")
	w.find(t, pending)
	w.has(t, "web")

	w.discover(t, "dev", "True", "nas")
	w.find(t, conflict)
	w.has(t, "other")

	if err := w.kube.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	w.find(t, pending)
	w.has(t, "web")
}

// has waits until there is one generated route, and it is a TailscaleGateway's.
func (w *world) has(t *testing.T, name string) {
	t.Helper()
	w.until(t, func(ctx context.Context) error {
		l := &gwapiv1.HTTPRouteList{}
		if err := w.kube.List(ctx, l, client.HasLabels{meta.LabelGenerated}); err != nil {
			return err
		}
		if len(l.Items) != 1 || l.Items[0].Labels[meta.LabelGateway] != name {
			return errors.Errorf("there are %d routes, not one of %s", len(l.Items), name)
		}
		return nil
	})
}

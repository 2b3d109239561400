// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gateways

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// TestCountHooks checks that two replicas add their hooks to one report.
func TestCountHooks(t *testing.T) {
	w := newEnvironment(t, false)
	type replica struct {
		*Controller

		answered tailnetv1alpha1.ReportedHooks
		reported hookCounts
	}
	replicas := []*replica{{reported: hookCounts{}}, {reported: hookCounts{}}}
	last := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for i, r := range replicas {
		r.Controller = w.replica(t, Options{Hooks: func(gateway string) *tailnetv1alpha1.ReportedHooks {
			if gateway != "shop/web" {
				return nil
			}
			return ptr.To(r.answered)
		}}, i == 0)
	}
	w.create(t, objects(t, gateway, tailscaleGateway)...)
	// syncedReport waits until all replicas have the current report in their caches, and returns it.
	syncedReport := func() *tailnetv1alpha1.GatewayReport {
		t.Helper()
		var out *tailnetv1alpha1.GatewayReport
		w.waitFor(t, func(ctx context.Context) error {
			r, err := w.report(ctx)
			if err != nil {
				return err
			}
			for _, c := range replicas {
				if reports := c.reports(ctx); len(reports) != 1 || reports[0].UID != r.UID {
					return errors.New("a replica does not have the report yet")
				}
			}
			out = r
			return nil
		})
		return out
	}
	countAll := func() {
		g := sync.WaitGroup{}
		for _, r := range replicas {
			g.Go(func() { r.countHooks(t.Context(), r.reported) })
		}
		g.Wait()
	}
	expect := func(reason string, total, failed int64) *tailnetv1alpha1.GatewayReport {
		t.Helper()
		r, err := w.report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := r.Spec.Extension.Hooks
		if got != nil && got.LastCall != nil {
			got.LastCall = ptr.To(metav1.NewTime(got.LastCall.UTC()))
		}
		if diff := cmp.Diff(&tailnetv1alpha1.ReportedHooks{Total: total, Failed: failed, LastCall: &last}, got); diff != "" {
			t.Fatalf("%s: -want, +got:\n%s", reason, diff)
		}
		return r
	}

	first := syncedReport()
	for range 5 {
		for i, r := range replicas {
			r.answered = tailnetv1alpha1.ReportedHooks{Total: r.answered.Total + 1 + int64(i), Failed: r.answered.Failed + int64(i), LastCall: &last}
		}
		countAll()
	}
	previous := expect("Hooks of both replicas are added, although they write at the same time", 15, 5)
	countAll()
	if current := expect("Without new hooks nothing is added", 15, 5); current.Generation != previous.Generation {
		t.Error("the report was written without new hooks")
	}

	w.create(t, objects(t, routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", ""))...)
	w.waitForRoutes(t, 1)
	expect("A write of routes keeps the hooks", 15, 5)

	if err := w.kube.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, func(context.Context) error {
		if syncedReport().UID == first.UID {
			return errors.New("the report has not been written again")
		}
		return nil
	})
	countAll()
	expect("A report that was created again gets all hooks", 15, 5)
}

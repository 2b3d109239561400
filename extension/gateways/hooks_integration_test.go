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

// TestCountHooks has two replicas tell of hooks, of which one writes all else.
func TestCountHooks(t *testing.T) {
	w := newWorld(t, false)
	type replica struct {
		*Controller

		asked tailnetv1alpha1.ReportedHooks
		told  tally
	}
	replicas := []*replica{{told: tally{}}, {told: tally{}}}
	last := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for i, r := range replicas {
		r.Controller = w.replica(t, Options{Hooks: func(gateway string) *tailnetv1alpha1.ReportedHooks {
			if gateway != "shop/web" {
				return nil
			}
			return ptr.To(r.asked)
		}}, i == 0)
	}
	w.create(t, objects(t, gateway, tailscaleGateway)...)
	// known waits until all replicas know the report that is there.
	known := func() *tailnetv1alpha1.GatewayReport {
		t.Helper()
		var out *tailnetv1alpha1.GatewayReport
		w.until(t, func(ctx context.Context) error {
			r, err := w.report(ctx)
			if err != nil {
				return err
			}
			for _, c := range replicas {
				if of := c.reports(ctx); len(of) != 1 || of[0].UID != r.UID {
					return errors.New("a replica does not know the report")
				}
			}
			out = r
			return nil
		})
		return out
	}
	tell := func() {
		g := sync.WaitGroup{}
		for _, r := range replicas {
			g.Go(func() { r.countHooks(t.Context(), r.told) })
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
		if got != nil && got.Last != nil {
			got.Last = ptr.To(metav1.NewTime(got.Last.UTC()))
		}
		if diff := cmp.Diff(&tailnetv1alpha1.ReportedHooks{Total: total, Failed: failed, Last: &last}, got); diff != "" {
			t.Fatalf("%s: -want, +got:\n%s", reason, diff)
		}
		return r
	}

	first := known()
	for range 5 {
		for i, r := range replicas {
			r.asked = tailnetv1alpha1.ReportedHooks{Total: r.asked.Total + 1 + int64(i), Failed: r.asked.Failed + int64(i), Last: &last}
		}
		tell()
	}
	before := expect("Both are added up, though they write at a time", 15, 5)
	tell()
	if after := expect("Nothing new is nothing to tell", 15, 5); after.Generation != before.Generation {
		t.Errorf("the report was written although nobody was asked")
	}

	w.create(t, objects(t, routeTo("HTTPRoute", "shop", "app", "{name: web}", "True", ""))...)
	w.reports(t, 1)
	expect("Who writes of routes takes nothing away", 15, 5)

	if err := w.kube.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.until(t, func(context.Context) error {
		if known().UID == first.UID {
			return errors.New("the report has not been written again")
		}
		return nil
	})
	tell()
	expect("A report that is made anew hears of all again", 15, 5)
}

//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"testing"
	"time"
)

const (
	// delay is the failoverTimeout, and the failbackDelay, of late in failover.yaml.
	delay = 3 * time.Second

	lateLocal, lateRemote = "192.0.2.12:8010", "192.0.2.20:10020"
)

// delays checks that other clusters get traffic only after local endpoints have failed for a while,
// and that local endpoints wait for a while before they get traffic again.
func delays(t *testing.T, w *environment) {
	const cluster = "tailscale/services/default/late/80/http"
	local := w.backend(t, lateLocal)
	w.backend(t, lateRemote)
	w.answers(t, "late.example.com", lateLocal)
	w.stand(t, cluster, map[string]string{lateLocal: "0 HEALTHY"})

	local.unhealthy.Store(true)
	began := time.Now()
	w.goesOver(t, lateLocal, lateRemote)
	if took := time.Since(began); took < delay {
		t.Errorf("the other cluster gets traffic after %s, want %s at least", took, delay)
	}
	t.Logf("the other cluster gets traffic after %s of %s", time.Since(began).Round(time.Millisecond), delay)

	w.spread(t, "late", lateRemote)
	local.unhealthy.Store(false)
	began = time.Now()
	w.goesOver(t, lateRemote, lateLocal)
	if took := time.Since(began); took < delay {
		t.Errorf("the local endpoint gets traffic again after %s, want %s at least", took, delay)
	}
	t.Logf("the local endpoint gets traffic again after %s of %s", time.Since(began).Round(time.Millisecond), delay)
	w.stand(t, cluster, map[string]string{lateLocal: "0 HEALTHY"})
}

// goesOver sends requests until only the second address answers. No request fails.
func (w *environment) goesOver(t *testing.T, from, to string) {
	t.Helper()
	ctx := within(t)
	c := w.Client()
	defer c.CloseIdleConnections()
	for {
		r := send(ctx, c, "late.example.com")
		switch {
		case r.err != nil:
			t.Fatalf("a request failed between %s and %s: %v", from, to, r.err)
		case r.backend == to:
			return
		case r.backend != from:
			t.Fatalf("%s answered, neither %s nor %s", r.backend, from, to)
		}
	}
}

// threshold checks the percentage of healthy endpoints below which other clusters get traffic: one
// of two is below 100 percent, and not below 40.
func threshold(t *testing.T, w *environment) {
	healthy, failing := w.backend(t, "192.0.2.13:8010"), w.backend(t, "192.0.2.14:8010")
	strict, lax := w.backend(t, "192.0.2.20:10021"), w.backend(t, "192.0.2.20:10022")
	remotes := map[string]*backend{"strict": strict, "lax": lax}
	for name, remote := range remotes {
		w.stand(t, "tailscale/services/default/"+name+"/80/http", map[string]string{
			healthy.address: "0 HEALTHY", failing.address: "0 HEALTHY", remote.address: "1 HEALTHY",
		})
		w.answers(t, name+".example.com", healthy.address)
		w.spread(t, name, healthy.address, failing.address)
	}
	failing.unhealthy.Store(true)
	for name, remote := range remotes {
		w.stand(t, "tailscale/services/default/"+name+"/80/http", map[string]string{
			healthy.address: "0 HEALTHY", failing.address: "0 DEGRADED", remote.address: "1 HEALTHY",
		})
	}
	w.spread(t, "strict", healthy.address, strict.address)
	w.spread(t, "lax", healthy.address)
}

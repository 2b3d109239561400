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

// delays have other clusters stand in only after local endpoints have failed for a
// while, and local endpoints wait for a while before they are used again.
func delays(t *testing.T, w *world) {
	const cluster = "tailscale/services/default/late/80/http"
	local := w.patient(t, lateLocal)
	w.patient(t, lateRemote)
	w.answers(t, "late.example.com", lateLocal)
	w.stand(t, cluster, map[string]string{lateLocal: "0 HEALTHY"})

	local.sick.Store(true)
	began := time.Now()
	w.goesOver(t, lateLocal, lateRemote)
	if took := time.Since(began); took < delay {
		t.Errorf("the other cluster stands in after %s, want %s at least", took, delay)
	}
	t.Logf("the other cluster stands in after %s of %s", time.Since(began).Round(time.Millisecond), delay)

	w.spread(t, "late", lateRemote)
	local.sick.Store(false)
	began = time.Now()
	w.goesOver(t, lateRemote, lateLocal)
	if took := time.Since(began); took < delay {
		t.Errorf("the local endpoint is used again after %s, want %s at least", took, delay)
	}
	t.Logf("the local endpoint is used again after %s of %s", time.Since(began).Round(time.Millisecond), delay)
	w.stand(t, cluster, map[string]string{lateLocal: "0 HEALTHY"})
}

// goesOver asks until the one answers no more, and the other does. No request fails.
func (w *world) goesOver(t *testing.T, from, to string) {
	t.Helper()
	ctx := within(t)
	c := w.Client()
	defer c.CloseIdleConnections()
	for {
		r := ask(ctx, c, "late.example.com")
		switch {
		case r.err != nil:
			t.Fatalf("a request fails between %s and %s: %v", from, to, r.err)
		case r.by == to:
			return
		case r.by != from:
			t.Fatalf("%s answers, neither %s nor %s", r.by, from, to)
		}
	}
}

// threshold of healthy endpoints below which other clusters get some: one of two is
// below 100 percent, and not below 40.
func threshold(t *testing.T, w *world) {
	well, sick := w.patient(t, "192.0.2.13:8010"), w.patient(t, "192.0.2.14:8010")
	strict, lax := w.patient(t, "192.0.2.20:10021"), w.patient(t, "192.0.2.20:10022")
	remotes := map[string]*patient{"strict": strict, "lax": lax}
	for name, remote := range remotes {
		w.stand(t, "tailscale/services/default/"+name+"/80/http", map[string]string{
			well.address: "0 HEALTHY", sick.address: "0 HEALTHY", remote.address: "1 HEALTHY",
		})
		w.answers(t, name+".example.com", well.address)
		w.spread(t, name, well.address, sick.address)
	}
	sick.sick.Store(true)
	for name, remote := range remotes {
		w.stand(t, "tailscale/services/default/"+name+"/80/http", map[string]string{
			well.address: "0 HEALTHY", sick.address: "0 DEGRADED", remote.address: "1 HEALTHY",
		})
	}
	w.spread(t, "strict", well.address, strict.address)
	w.spread(t, "lax", well.address)
}

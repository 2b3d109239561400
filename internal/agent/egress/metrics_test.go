// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"io"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// series returns the values of a metric by target.
func (f *fixture) series(name string) map[string]float64 {
	f.t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(f.server.metrics)
	families, err := r.Gather()
	if err != nil {
		f.t.Fatalf("Gather(): %v", err)
	}
	out := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == labelTarget {
					out[l.GetValue()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

// TestForgotten checks the metrics of a port that gets another target while it has a
// connection.
func TestForgotten(t *testing.T) {
	const current = "tailscale_gateway_egress_open_connections"
	f := newFixture(t, echo)
	set := func(target string) {
		t.Helper()
		if errs := f.server.Set(t.Context(), map[uint16]Route{1: {Target: target, Addr: addrDB, Phase: Leaving}}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	want := func(reason string, w map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(w, f.series(current)); diff != "" {
			t.Errorf("%s\n-want, +got:\n%s", reason, diff)
		}
	}
	open := func() *net.TCPConn {
		t.Helper()
		c := f.connect(1)
		if _, err := io.WriteString(c, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	set("db")
	first := open()
	want("A connection is counted.", map[string]float64{"db": 1})
	set("other")
	want("A target that no port leads to is forgotten.", map[string]float64{})
	set("db")
	reset(first)
	f.eventually("the port still has the connection", func() bool { return f.server.Idle(1) })
	want("A connection from before does not count when the target comes back.", map[string]float64{})
	second := open()
	want("One of after does.", map[string]float64{"db": 1})
	reset(second)
	f.eventually("the port still has the connection", func() bool { return f.server.Idle(1) })
	want("It is no more once it has ended.", map[string]float64{"db": 0})

	p := f.server.port(1)
	set("other")
	if _, ok := p.opened("db"); ok {
		t.Error("opened(...): a connection to a forgotten target must not count")
	}
	p.refuse("db", reasonDial)
	if got := f.series("tailscale_gateway_egress_refused_connections_total"); len(got) > 0 {
		t.Errorf("a refusal for a forgotten target must not count: %v", got)
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// benchProber returns a prober of 5000 targets with two endpoints each.
func benchProber() (*Prober, []*endpoint) {
	var ts []*ir.Target
	for i := range 5000 {
		ts = append(ts, targetOf(strconv.Itoa(i), ir.Delays{}, fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)))
	}
	s := &fakeStore{placed: map[ir.TargetKey]ir.Placement{}}
	s.set(ts...)
	p := NewProber(s, Options{})
	p.sync(time.Now())
	all := make([]*endpoint, 0, len(p.checks))
	for _, e := range p.checks {
		p.due.remove(e)
		all = append(all, e)
	}
	return p, all
}

// BenchmarkFinish measures the cost of one probe without the network.
func BenchmarkFinish(b *testing.B) {
	p, all := benchProber()
	ok, _, _ := results()
	for i := 0; b.Loop(); i++ {
		e := all[i%len(all)]
		p.due.remove(e)
		p.finish(time.Now(), outcome{endpoint: e, result: ok})
	}
}

// BenchmarkSync measures the cost of a new snapshot without a changed target.
func BenchmarkSync(b *testing.B) {
	p, _ := benchProber()
	for b.Loop() {
		p.sync(time.Now())
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"runtime"
	"testing"
	"weak"

	"k8s.io/apimachinery/pkg/types"
)

// TestSnapshotsAreFreed checks that a Snapshot keeps no earlier one in memory. Two tables that
// change in turn would otherwise keep all: each table was last written in another Draft.
func TestSnapshotsAreFreed(t *testing.T) {
	const edits = 100
	s := &Snapshot{}
	earlier := make([]weak.Pointer[Route], 0, edits)
	for range edits {
		route := &Route{}
		earlier = append(earlier, weak.Make(route))
		d := s.Edit()
		d.Routes.Set(d, RouteKey{}, route)
		d = d.Finish().Edit()
		d.Gateways.Set(d, types.NamespacedName{}, &Gateway{})
		s = d.Finish()
	}
	runtime.GC()
	retained := 0
	for _, p := range earlier[:edits-1] {
		if p.Value() != nil {
			retained++
		}
	}
	if retained > 0 {
		t.Errorf("the newest Snapshot keeps %d routes of %d earlier ones", retained, edits-1)
	}
	if s.tables.Routes.Get(RouteKey{}) != earlier[edits-1].Value() {
		t.Error("the newest Snapshot lost its route")
	}
}

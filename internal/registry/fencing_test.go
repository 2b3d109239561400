// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestFencing checks that a record keeps what the controller of fences has written, until the service has no
// fencing.
func TestFencing(t *testing.T) {
	w := wanted(func(w *Want) { w.Fencing = true })
	first, err := ownRecord(view(nil), me, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	statement := Fencing{Lost: []LostHost{{Node: "n1", Witnesses: 2}}, Fence: &fence.Fence{Node: "n1", Cluster: me.Cluster, Deadline: testTime.Add(time.Minute)}}
	written, changed, err := SetFencing(first, statement, testTime)
	if err != nil || !changed {
		t.Fatalf("SetFencing(...): want a change, got %t, %v", changed, err)
	}
	if _, changed, err := SetFencing(written, statement, testTime.Add(time.Second)); err != nil || changed {
		t.Errorf("SetFencing(...): want no change by the same fencing, got %t, %v", changed, err)
	}
	renewed, err := ownRecord(view([]tailscale.Service{written}), me, w, &written)
	if err != nil {
		t.Fatal(err)
	}
	if !Same(written, renewed) {
		t.Errorf("the controller of VIPServices changes the fencing: %v", renewed.Annotations)
	}
	members, _ := view([]tailscale.Service{renewed}).Members(sharedService)
	for name, tc := range map[string]struct {
		reason string
		at     time.Time
		want   map[string]bool
	}{
		"Fenced":  {reason: "A fence counts for all clusters.", at: testTime, want: map[string]bool{"n1": true}},
		"Expired": {reason: "It ends at its time.", at: testTime.Add(time.Minute), want: map[string]bool{}},
	} {
		if diff := cmp.Diff(tc.want, Fenced(members, tc.at)); diff != "" {
			t.Errorf("%s: %s\nFenced(...): -want, +got:\n%s", name, tc.reason, diff)
		}
	}
	votes := []fence.Vote{{Host: "n1", Witness: me.Cluster, Place: me.Cluster, Lost: true}, {Host: "n1", Witness: me.Cluster, Place: me.Cluster, Lost: true}}
	if diff := cmp.Diff(votes, members[0].Votes(testTime.Add(time.Minute))); diff != "" {
		t.Errorf("Votes(...): -want, +got:\n%s", diff)
	}
	if votes := members[0].Votes(testTime.Add(votesLast + time.Second)); len(votes) > 0 {
		t.Errorf("Votes(...): want the votes of a cluster that is cut off not to count, got %v", votes)
	}
	if _, changed, err := SetFencing(renewed, statement, testTime.Add(votesRenew)); err != nil || !changed {
		t.Errorf("SetFencing(...): want votes to be renewed, got %t, %v", changed, err)
	}
	ended, err := ownRecord(view(nil), me, wanted(), &renewed)
	if err != nil {
		t.Fatal(err)
	}
	if r, _, err := RecordOf(&ended); err != nil || r.Fencing != nil {
		t.Errorf("want a record without fencing, got %v, %v", r.Fencing, err)
	}
}

// TestSetFencingWithoutRecord checks that only the record of a cluster is written.
func TestSetFencingWithoutRecord(t *testing.T) {
	for name, s := range map[string]tailscale.Service{
		"None":    {Name: sharedService},
		"Foreign": {Name: sharedService, Annotations: map[string]string{meta.AnnotationSchemaVersion: meta.SchemaVersion, meta.AnnotationRecord: "{}"}},
	} {
		if _, _, err := SetFencing(s, Fencing{}, testTime); err == nil {
			t.Errorf("%s: SetFencing(...): want an error", name)
		}
	}
}

// TestVotesHostile checks that a record cannot claim more witnesses than a host has.
func TestVotesHostile(t *testing.T) {
	r := Record{Cluster: "b", Fencing: &Fencing{Time: &testTime, Lost: []LostHost{{Node: "n1", Witnesses: 1 << 30}, {Node: "n2", Witnesses: -1}}}}
	if n := len(r.Votes(testTime)); n != fence.MaxWitnesses {
		t.Errorf("Votes(...): want %d votes, got %d", fence.MaxWitnesses, n)
	}
}

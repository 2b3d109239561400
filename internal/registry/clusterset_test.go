// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestCheckSet checks which clusters may join the clusters that share a service.
func TestCheckSet(t *testing.T) {
	set := func(name string) func(*Record) { return func(r *Record) { r.ClusterSet = name } }
	operator := func(name string) func(*Record) { return func(r *Record) { r.Operator = name } }
	wantSet := func(name string) Want { return wanted(func(w *Want) { w.ClusterSet = name }) }
	long := testTime.Add(-30 * 24 * time.Hour)
	annotated := func(name string) *tailscale.Service {
		s := settled(t).Service(sharedService)
		out := *s
		out.Annotations = maps.Clone(s.Annotations)
		if name != "" {
			out.Annotations[meta.AnnotationClusterSet] = name
		}
		return &out
	}
	cases := map[string]struct {
		reason  string
		records []tailscale.Service
		current *tailscale.Service
		want    Want
		refusal string
	}{
		"First":   {reason: "The first cluster may share the service with its set.", want: wantSet("prod")},
		"SameSet": {reason: "A cluster of the set joins.", records: []tailscale.Service{recordOf(t, "b", testTime, set("prod"))}, want: wantSet("prod")},
		"Open":    {reason: "Without sets every cluster joins, whatever its object is called.", records: []tailscale.Service{recordOf(t, "b", testTime, operator("other/web"))}, want: wantSet("")},
		"OtherSet": {
			reason: "A cluster of another set is a stranger.", records: []tailscale.Service{recordOf(t, "b", testTime, set("prod"))}, want: wantSet("test"),
			refusal: `service "svc:web" is shared by cluster b of the cluster set "prod"; set clusterSet to "prod" in this cluster's TailscaleTailnet or provider config (a TailscaleServices then needs no sharing, and a VIPService sharing ClusterSet), or choose another name`,
		},
		"NoSet": {
			reason: "A cluster that shares with any other one does not join a set.", records: []tailscale.Service{recordOf(t, "b", testTime, set("prod"))}, want: wantSet(""),
			refusal: `service "svc:web" is shared by cluster b of the cluster set "prod"; set clusterSet to "prod" in this cluster's TailscaleTailnet or provider config (a TailscaleServices then needs no sharing, and a VIPService sharing ClusterSet), or choose another name`,
		},
		"OpenToSet": {
			reason: "A set does not join clusters that share with any other one.", records: []tailscale.Service{recordOf(t, "b", testTime)}, want: wantSet("prod"),
			refusal: `service "svc:web" is shared by cluster b; set sharing to Shared, or choose another name`,
		},
		"OtherObject": {
			reason: "In a set only the same object shares the service.", records: []tailscale.Service{recordOf(t, "b", testTime, set("prod"), operator("shop/web"))}, want: wantSet("prod"),
			refusal: `service "svc:web" belongs to shop/web in the cluster set "prod", and a set shares only objects of the same namespace and name; choose another name for the service`,
		},
		"Silent": {
			reason: "A cluster that was not seen for a while may come back.", records: []tailscale.Service{recordOf(t, "b", testTime.Add(-time.Hour), set("prod"), nodes("gone"))}, want: wantSet("test"),
			refusal: `service "svc:web" is shared by cluster b of the cluster set "prod"; set clusterSet to "prod" in this cluster's TailscaleTailnet or provider config (a TailscaleServices then needs no sharing, and a VIPService sharing ClusterSet), or choose another name`,
		},
		"Expired": {reason: "An expired record keeps nobody out.", records: []tailscale.Service{recordOf(t, "b", long, set("prod"), nodes("gone"))}, want: wantSet("test")},
		"Member":  {reason: "A member that moves to another set first stays.", records: []tailscale.Service{recordOf(t, "a", testTime, set("prod")), recordOf(t, "b", testTime, set("prod"))}, want: wantSet("test")},
		"Moving":  {reason: "A set that moves admits clusters of both names.", records: []tailscale.Service{recordOf(t, "b", testTime, set("prod")), recordOf(t, "c", testTime, set("test"))}, want: wantSet("test")},
		"RecordsLost": {
			reason: "Without records, the annotation of the service counts.", current: annotated("prod"), want: wantSet("test"),
			refusal: `service "svc:web" is shared with cluster set "prod"; set clusterSet to "prod" in this cluster's TailscaleTailnet or provider config (a TailscaleServices then needs no sharing, and a VIPService sharing ClusterSet), choose another name, or set adoptionPolicy to Adopt`,
		},
		"RecordsLostAdopt":   {reason: "adoptionPolicy takes over a service without records.", current: annotated("prod"), want: wanted(func(w *Want) { w.ClusterSet, w.Adopt = "test", true })},
		"RecordsLostSameSet": {reason: "A cluster of the set repairs a service without records.", current: annotated("prod"), want: wantSet("prod")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkSet(view(tc.records), tc.current, me, tc.want); err != nil {
				if _, ok := Refusal(err); !ok {
					t.Fatalf("\n%s\ncheckSet(...): want a refusal, got %v", tc.reason, err)
				}
				got = err.Error()
			}
			if diff := cmp.Diff(tc.refusal, got); diff != "" {
				t.Errorf("\n%s\ncheckSet(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDraining checks that a record keeps since when its cluster drains, and that of two clusters that
// drain at most one does not see the other.
func TestDraining(t *testing.T) {
	w := wanted(func(w *Want) { w.Draining = true })
	first, err := ownRecord(view(nil), me, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	later := view([]tailscale.Service{first})
	later.ServicesAt = testTime.Add(Pause)
	renewed, err := ownRecord(later, me, w, &first)
	if err != nil {
		t.Fatal(err)
	}
	if !Same(first, renewed) {
		t.Errorf("a record that drains changes later: %v", renewed.Annotations)
	}
	members, _ := later.Members(sharedService)
	if !DrainAnnounced(later, members, me.Cluster) {
		t.Error("DrainAnnounced(...): want true after Pause")
	}
	early := view([]tailscale.Service{first})
	if members, _ := early.Members(sharedService); DrainAnnounced(early, members, me.Cluster) {
		t.Error("DrainAnnounced(...): want false before Pause")
	}
	if got := Serving(members); len(got) != 0 {
		t.Errorf("Serving(...): want no member, got %v", got)
	}
	ended, err := ownRecord(later, me, wanted(), &first)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := RecordOf(&ended)
	if err != nil || r.Draining != nil {
		t.Errorf("want a record without a drain once it ends, got %v, %v", r.Draining, err)
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var testTime = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// watch simulates pings of a witness for a time: answered decides which are answered. It returns after how
// long the host was first lost, or zero.
func watch(t *Tracker, d time.Duration, answered func(at time.Duration) bool) time.Duration {
	type ping struct{ start, due time.Duration }
	var pings []ping
	for at := time.Duration(0); at < d; {
		pings = append(pings, ping{start: at, due: at + Timeout})
		if answered(at) {
			t.Answered(testTime.Add(at))
		}
		at += t.Pause()
		for len(pings) > 0 && pings[0].due <= at {
			t.Failed(testTime.Add(pings[0].start), testTime.Add(pings[0].due))
			if t.Lost() {
				return pings[0].due
			}
			pings = pings[1:]
		}
	}
	return 0
}

// TestTracker checks when a witness loses a host.
func TestTracker(t *testing.T) {
	cases := map[string]struct {
		reason   string
		answered func(at time.Duration) bool
		want     time.Duration
	}{
		"Alive":     {reason: "A host that answers is not lost.", answered: func(time.Duration) bool { return true }},
		"NeverSeen": {reason: "A host that has never answered may be invisible to this machine.", answered: func(time.Duration) bool { return false }},
		"Dead":      {reason: "A host that answers no more is lost within four seconds.", answered: func(at time.Duration) bool { return at < 10*time.Second }, want: 13500 * time.Millisecond},
		"Pause":     {reason: "A host that is silent for two seconds is not lost.", answered: func(at time.Duration) bool { return at < 10*time.Second || at > 12*time.Second }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, watch(&Tracker{}, time.Minute, tc.answered)); diff != "" {
				t.Errorf("\n%s\nLost(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTrackerFrozen checks that a witness that stood still for a while does not lose a host.
func TestTrackerFrozen(t *testing.T) {
	tr := &Tracker{}
	tr.Answered(testTime)
	tr.Failed(testTime.Add(time.Second), testTime.Add(time.Minute))
	if tr.Lost() {
		t.Error("Lost(): want a host that failed one ping to be alive")
	}
}

// TestTrackerBack checks that a lost host is alive again once it has answered for a while.
func TestTrackerBack(t *testing.T) {
	tr := &Tracker{}
	lost := watch(tr, time.Minute, func(at time.Duration) bool { return at < time.Second })
	back := time.Duration(0)
	for at := lost + time.Minute; back == 0; at += tr.Pause() {
		tr.Answered(testTime.Add(at))
		if tr.Lost() {
			t.Fatalf("Lost(): want a host that answers to be returning")
		}
		if !tr.Returning() {
			back = at - lost - time.Minute
		}
	}
	if diff := cmp.Diff(AnswersFor, back); diff != "" {
		t.Errorf("Answered(...): -want, +got time until a lost host is alive:\n%s", diff)
	}
}

// TestLoss checks that two witnesses do not lose a living host in an hour of 20 % loss in each direction.
func TestLoss(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2 * MaxWitnesses {
		if loss := watch(&Tracker{}, time.Hour, func(time.Duration) bool { return r.Float64() < 0.8*0.8 }); loss != 0 {
			t.Errorf("Lost(): want a host that answers 64 %% of pings to be alive, got lost after %v", loss)
		}
	}
}

// TestShare checks that clusters agree on who watches a host.
func TestShare(t *testing.T) {
	cases := map[string]struct {
		reason   string
		clusters []Cluster
		want     int // Of all clusters.
		minimum  int // Of clusters with a witness.
	}{
		"Single":   {reason: "The machines of one cluster, except for the host, are witnesses.", clusters: []Cluster{{ID: "a", Nodes: []string{"host", "a1"}}}, want: 1, minimum: 1},
		"Many":     {reason: "A host has at most three witnesses.", clusters: []Cluster{{ID: "a", Nodes: []string{"host", "a1", "a2", "a3", "a4"}}}, want: MaxWitnesses, minimum: 1},
		"Home":     {reason: "With two clusters, two witnesses are of the other one.", clusters: []Cluster{{ID: "a", Nodes: []string{"host", "a1", "a2"}}, {ID: "b", Nodes: []string{"b1", "b2"}}}, want: MaxWitnesses, minimum: 2},
		"Clusters": {reason: "Witnesses are of as many clusters as possible.", clusters: []Cluster{{ID: "a", Nodes: []string{"host", "a1", "a2"}}, {ID: "b", Nodes: []string{"b1", "b2"}}, {ID: "c", Nodes: []string{"c1"}}, {ID: "d"}}, want: MaxWitnesses, minimum: 3},
		"Alone":    {reason: "A host alone has no witness.", clusters: []Cluster{{ID: "a", Nodes: []string{"host"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			total, clusters := 0, 0
			for _, c := range tc.clusters {
				n := Share("host", c.ID, tc.clusters)
				reversed := slices.Clone(tc.clusters)
				slices.Reverse(reversed)
				if other := Share("host", c.ID, reversed); other != n {
					t.Errorf("\n%s\nShare(...): want the same in any order of clusters, got %d and %d", tc.reason, n, other)
				}
				total += n
				if n > 0 {
					clusters++
				}
				if slices.Contains(c.Nodes, "host") && len(tc.clusters) > 1 && n > 1 {
					t.Errorf("\n%s\nShare(...): want the cluster of the host to be the last, got %d of its machines", tc.reason, n)
				}
			}
			if total != tc.want || clusters < tc.minimum {
				t.Errorf("\n%s\nShare(...): want %d witnesses of %d clusters, got %d of %d", tc.reason, tc.want, tc.minimum, total, clusters)
			}
		})
	}
}

// TestWitnesses checks that no two witnesses of a host, and no witness and the host, fail together.
func TestWitnesses(t *testing.T) {
	machines := []Machine{
		{Name: "a", NodeID: "na", Place: "one"}, {Name: "b", NodeID: "nb", Place: "one"}, {Name: "c", NodeID: "nc", Place: "two"},
		{Name: "d", NodeID: "nd", Place: "three"}, {Name: "unknown", NodeID: "nu"}, {Name: "new", Place: "four"},
	}
	cases := map[string]struct {
		reason string
		host   string
		place  string
		n      int
		want   []string
	}{
		"OtherNodes": {reason: "Machines of the host's Kubernetes node fail with it.", host: "na", place: "one", n: 3, want: []string{"three", "two"}},
		"Foreign":    {reason: "All machines may watch a host of another cluster, one of each Kubernetes node.", host: "nx", n: 3, want: []string{"one", "three", "two"}},
		"Limit":      {reason: "No more than the share of this cluster.", host: "na", place: "one", n: 1, want: []string{"two"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range Witnesses(tc.host, tc.place, machines, tc.n) {
				got = append(got, m.Place)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nWitnesses(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPlan checks what a cluster does about a service.
func TestPlan(t *testing.T) {
	lost := func(host, place string) Vote {
		return Vote{Host: host, Witness: "w-" + place, Place: place, Lost: true}
	}
	alive := func(host, place string) Vote {
		return Vote{Host: host, Witness: "w-" + place, Place: place}
	}
	two := []Host{{Node: "h1", Serves: true, Fenceable: true}, {Node: "h2", Serves: true, Fenceable: true, Local: true}}
	far := []Host{two[0], {Node: "h2", Serves: true, Fenceable: true}}
	fence := func(node, cluster string) Fence {
		return Fence{Node: node, Cluster: cluster, Deadline: testTime.Add(time.Minute)}
	}
	expired := fence("h1", "a")
	expired.Deadline = testTime
	cases := map[string]struct {
		reason string
		facts  Facts
		fence  string
		clear  []Fence
	}{
		"Majority":    {reason: "A host that two of three witnesses lost is fenced.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), lost("h1", "y"), alive("h1", "z")}}, fence: "h1"},
		"Minority":    {reason: "One of three is no majority.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), alive("h1", "y"), alive("h1", "z")}}},
		"Half":        {reason: "One of two is no majority.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), alive("h1", "y")}}},
		"Single":      {reason: "One witness alone may be the one without a network.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x")}}},
		"SamePlace":   {reason: "Witnesses of one place fail together.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), lost("h1", "x")}}},
		"LastHost":    {reason: "A service keeps one approved host.", facts: Facts{Hosts: []Host{two[0], {Node: "h2", Local: true}}, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}}},
		"BothLost":    {reason: "If witnesses lose all hosts, no host is fenced.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), lost("h1", "y"), lost("h2", "x"), lost("h2", "y")}}},
		"NotServing":  {reason: "A host that does not serve, such as one that a person refused, is left alone.", facts: Facts{Hosts: []Host{{Node: "h1"}, {Node: "h2", Serves: true}}, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}}},
		"Stopping":    {reason: "A pod that is being stopped does not answer.", facts: Facts{Hosts: []Host{{Node: "h1", Serves: true}, two[1]}, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}}},
		"Unknown":     {reason: "A host that nobody reaches may be dead, too.", facts: Facts{Hosts: far, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}}},
		"Reached":     {reason: "One that a witness reaches replaces the host.", facts: Facts{Hosts: far, Votes: []Vote{lost("h1", "x"), lost("h1", "y"), alive("h2", "x")}}, fence: "h1"},
		"FarFuture":   {reason: "A record cannot keep all hosts from being fenced for longer than a fence lasts.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}, Fences: []Fence{{Node: "h3", Cluster: "b", Deadline: testTime.Add(time.Hour)}}}, fence: "h1"},
		"OneAtATime":  {reason: "A service has at most one fenced host.", facts: Facts{Hosts: []Host{two[0], two[1], {Node: "h3"}}, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}, Fences: []Fence{fence("h3", "b")}}},
		"Still":       {reason: "A fence stays while its host does not answer.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}, Fences: []Fence{fence("h1", "a")}}},
		"Silent":      {reason: "A fence stays while no witness says anything.", facts: Facts{Hosts: two, Fences: []Fence{fence("h1", "a")}}},
		"Answers":     {reason: "A host that answers serves again.", facts: Facts{Hosts: two, Votes: []Vote{alive("h1", "x"), alive("h1", "y")}, Fences: []Fence{fence("h1", "a")}}, clear: []Fence{fence("h1", "a")}},
		"Expired":     {reason: "A fence ends.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}, Fences: []Fence{expired}}, clear: []Fence{expired}},
		"NotOurs":     {reason: "The cluster that fenced a host clears it.", facts: Facts{Hosts: two, Votes: []Vote{alive("h1", "x")}, Fences: []Fence{fence("h1", "b")}}},
		"Superseded":  {reason: "Of two clusters that fence different hosts at once, one gives way.", facts: Facts{Hosts: two, Votes: []Vote{lost("h2", "x"), lost("h2", "y")}, Fences: []Fence{fence("h1", "b"), fence("h2", "a")}}, clear: []Fence{fence("h2", "a")}},
		"Supersedes":  {reason: "The other one does not.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}, Fences: []Fence{fence("h1", "a"), fence("h2", "b")}}},
		"ExpiredFar":  {reason: "An expired fence of another cluster keeps nobody from being fenced.", facts: Facts{Hosts: two, Votes: []Vote{lost("h1", "x"), lost("h1", "y")}, Fences: []Fence{{Node: "h2", Cluster: "b", Deadline: testTime}}}, fence: "h1"},
		"NothingLost": {reason: "Nothing happens while all answer.", facts: Facts{Hosts: two, Votes: []Vote{alive("h1", "x"), alive("h2", "x")}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.facts.Cluster, tc.facts.Time = "a", testTime
			d := Plan(tc.facts)
			if diff := cmp.Diff(tc.fence, d.Fence); diff != "" {
				t.Errorf("\n%s\nPlan(...).Fence: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.clear, d.Clear); diff != "" {
				t.Errorf("\n%s\nPlan(...).Clear: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

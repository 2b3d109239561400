// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

func TestRouting(t *testing.T) {
	vip := netip.MustParseAddr("100.96.0.1")
	set := map[netip.Addr]bool{vip: true}
	accepted := map[string]bool{"svc:web": true}
	none := localapi.State{Running: true, Accepted: accepted, Routes: localapi.Routes{Reported: true}}
	primary := localapi.State{Running: true, Accepted: accepted, Routes: localapi.Routes{Reported: true, Primary: set}}
	peer := localapi.State{Running: true, Accepted: accepted, Routes: localapi.Routes{Reported: true, Others: set}}
	type moment struct {
		at        time.Duration
		state     localapi.State
		withdrawn bool
		idle      bool
	}
	cases := map[string]struct {
		reason  string
		moments []moment
		want    v1alpha1.Routing
		next    time.Duration
	}{
		"Primary": {reason: "This machine is primary.", moments: []moment{{state: primary}}, want: v1alpha1.RoutingTrue},
		"Peer":    {reason: "Another host, of this cluster or another one, is primary.", moments: []moment{{state: peer}}, want: v1alpha1.RoutingTrue},
		"Fresh":   {reason: "A host that was just accepted waits for control.", moments: []moment{{state: none}}, want: v1alpha1.RoutingUnknown, next: time.Minute},
		"Dead":    {reason: "Nobody is primary for a minute.", moments: []moment{{state: none}, {at: time.Minute, state: none}}, want: v1alpha1.RoutingFalse},
		"Failover": {
			reason:  "A failover changes no report, however often it happens.",
			moments: []moment{{state: primary}, {at: time.Second, state: none}, {at: 16 * time.Second, state: peer}, {at: 20 * time.Second, state: none}, {at: 79 * time.Second, state: none}},
			want:    v1alpha1.RoutingTrue, next: 80 * time.Second,
		},
		"Back": {reason: "A dead service that is routed again is reported at once.", moments: []moment{{state: none}, {at: time.Minute, state: none}, {at: 61 * time.Second, state: peer}}, want: v1alpha1.RoutingTrue},
		"Withdrawn": {
			reason:  "A service that is withdrawn for a moment stays dead, and is observed for another minute.",
			moments: []moment{{state: none}, {at: time.Minute, state: none}, {at: 61 * time.Second, state: none, withdrawn: true}, {at: 66 * time.Second, state: none}},
			want:    v1alpha1.RoutingFalse, next: 126 * time.Second,
		},
		"NotAccepted": {
			reason:  "A machine that control has not accepted knows nothing of other hosts.",
			moments: []moment{{state: localapi.State{Running: true, Routes: localapi.Routes{Reported: true}}}, {at: time.Hour, state: localapi.State{Running: true, Routes: localapi.Routes{Reported: true}}}},
			want:    v1alpha1.RoutingUnknown,
		},
		"NotOffered": {reason: "Nor does one that does not offer the service.", moments: []moment{{state: none, idle: true}, {at: time.Hour, state: none, idle: true}}, want: v1alpha1.RoutingUnknown},
		"NotReported": {
			reason:  "A tailscaled that does not report its network map says nothing.",
			moments: []moment{{state: localapi.State{Running: true, Accepted: accepted}}, {at: time.Hour, state: localapi.State{Running: true, Accepted: accepted}}},
		},
		"ControlAway": {
			reason:  "While tailscaled is not connected, nothing changes.",
			moments: []moment{{state: primary}, {at: time.Second, state: localapi.State{}}, {at: time.Hour, state: localapi.State{}}},
			want:    v1alpha1.RoutingTrue,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, begin := routing{}, time.Unix(1000, 0)
			var next time.Time
			for _, m := range tc.moments {
				next = r.step(begin.Add(m.at), time.Minute, []plan.Service{{Name: "svc:web", Advertise: !m.idle}},
					map[string][]netip.Addr{"svc:web": {vip}}, map[string]bool{"svc:web": !m.idle && !m.withdrawn}, m.state)
			}
			if diff := cmp.Diff(tc.want, r.states()["svc:web"]); diff != "" {
				t.Errorf("\n%s\nstates(): -want, +got:\n%s", tc.reason, diff)
			}
			want := time.Time{}
			if tc.next > 0 {
				want = begin.Add(tc.next)
			}
			if !next.Equal(want) {
				t.Errorf("\n%s\nstep(...): want next %s, got %s", tc.reason, want, next)
			}
		})
	}
}

func TestRoutingForgets(t *testing.T) {
	r := routing{"svc:gone": {state: v1alpha1.RoutingTrue}}
	r.step(time.Unix(1000, 0), time.Minute, nil, nil, nil, localapi.State{})
	if len(r) > 0 {
		t.Errorf("\nServices that are not wanted must be forgotten: %v", r)
	}
}

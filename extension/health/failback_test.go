// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func TestFailoverTimeout(t *testing.T) {
	ok, bad, _ := results()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, targetOf("web", ir.Delays{Failover: time.Minute, Failback: 2 * time.Minute}, "a", "x"))
		defer l.stop()
		l.want(t, "at the start other clusters may serve", ir.Placement{})
		after(30 * time.Second)
		l.want(t, "other clusters stop when local backends are healthy", ir.Placement{LocalOnly: true})
		l.net.set("a", bad)
		after(30 * time.Second)
		l.want(t, "other clusters do not serve before the failoverTimeout", ir.Placement{LocalOnly: true, Unhealthy: unhealthy("a")})
		if got, _ := l.p.Target(key("web")); got.Tier != TierLastResort {
			t.Errorf("%s answers, want the remaining endpoints", got.Tier)
		}
		after(time.Minute)
		l.want(t, "other clusters serve after the failoverTimeout", ir.Placement{Unhealthy: unhealthy("a")})
		l.net.set("a", ok)
		after(30 * time.Second)
		l.want(t, "a healthy backend waits for the delay", ir.Placement{Local: true})
		after(2 * time.Minute)
		l.want(t, "and serves after the delay", ir.Placement{LocalOnly: true})
	})
}

func TestPrimary(t *testing.T) {
	ok, bad, _ := results()
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, targetOf("web", ir.Delays{Primary: "p", PrimaryFailback: time.Minute}, "p", "s"))
		defer l.stop()
		after(30 * time.Second)
		l.net.set("p", bad)
		after(30 * time.Second)
		l.want(t, "the primary is unhealthy", ir.Placement{Unhealthy: unhealthy("p")})
		l.net.set("p", ok)
		after(30 * time.Second)
		l.want(t, "the primary is healthy, and waits", ir.Placement{Waiting: map[string]bool{"p": true}})
		after(time.Minute)
		l.want(t, "the primary serves again", ir.Placement{})
	})
}

// TestNewPods checks that the delays of failback also apply to pods that replace those of a Deployment which
// was scaled down, and not to the first ones.
func TestNewPods(t *testing.T) {
	ok, _, _ := results()
	cases := map[string]struct {
		reason string
		delays ir.Delays

		// start are the hosts at first, and rest those once pods are gone.
		start, rest []string
		want        ir.Placement
	}{
		"Local": {
			reason: "Local pods wait for the delay.",
			delays: ir.Delays{Failback: 2 * time.Minute}, start: []string{"a", "x"}, rest: []string{"x"},
			want: ir.Placement{Local: true},
		},
		"FirstLocal": {
			reason: "The first local pods do not wait.",
			delays: ir.Delays{Failback: 2 * time.Minute}, start: []string{"x"}, rest: []string{"x"},
		},
		"Primary": {
			reason: "Pods of the primary backend wait for its delay.",
			delays: ir.Delays{Primary: "p", PrimaryFailback: 2 * time.Minute}, start: []string{"p", "s"}, rest: []string{"s"},
			want: ir.Placement{Waiting: map[string]bool{"p": true}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, targetOf("web", tc.delays, tc.start...))
				defer l.stop()
				show := func(hosts ...string) {
					for _, h := range hosts {
						l.net.set(h, ok)
					}
					l.store.set(targetOf("web", tc.delays, hosts...))
					l.p.Changed()
					after(30 * time.Second)
				}
				after(30 * time.Second)
				show(tc.rest...)
				show("a", "p", "s", "x")
				l.want(t, tc.reason, tc.want)
				after(2 * time.Minute)
				l.want(t, "after the delay they serve", ir.Placement{})
			})
		})
	}
}

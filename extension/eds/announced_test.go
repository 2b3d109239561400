// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestAnnounced changes two lists and announces them one after the other: a refresh looks only at announced
// lists, under each of their names, whatever the number of others.
func TestAnnounced(t *testing.T) {
	web, api := key("web").ClusterName(), key("api").ClusterName()
	tuned, padded := web+"+health=9090", strings.Replace(web, "/80/", "/080/", 1)
	run(t, targets(target("web", "10.0.0.1"), target("api", "10.0.0.2")), func(h *harness) {
		c := h.endpoints()
		c.subscribe(web, tuned, padded, api)
		c.received()
		h.snapshot.Store(ir.NewSnapshot(targets(target("web", "10.0.1.1"), target("api", "10.0.1.2"))))

		h.server.Changed([]string{web}, false)
		<-time.After(time.Minute)
		want := map[string][]string{web: {"10.0.1.1"}, tuned: {"10.0.1.1 checked at 9090"}, padded: {"10.0.1.1"}}
		if diff := cmp.Diff(want, c.addresses()); diff != "" {
			t.Errorf("after the first list is announced: -want, +got:\n%s", diff)
		}
		h.server.Changed([]string{api, "unknown"}, false)
		<-time.After(time.Minute)
		if diff := cmp.Diff(map[string][]string{api: {"10.0.1.2"}}, c.addresses()); diff != "" {
			t.Errorf("after the second list is announced: -want, +got:\n%s", diff)
		}
	})
}

// TestRetuned gives a subscribed list's tuning to a policy, and takes it away, without a change of any list:
// the list is expected only while a policy has the tuning.
func TestRetuned(t *testing.T) {
	plain := targets(target("web", "10.0.0.1"))
	tuning := ir.Tuning{HealthPort: 9090}
	tuned := plain
	tuned.Tunings = map[ir.RouteKey]map[string]ir.Tuning{{Kind: ir.KindHTTPRoute, NamespacedName: named("web")}: {"": tuning}}
	run(t, plain, func(h *harness) {
		c := h.endpoints()
		c.subscribe(tuning.Name(key("web").ClusterName()))
		c.received()
		if h.doubtful() == 0 {
			t.Error("want a list whose tuning no policy has to be charged")
		}
		for _, tc := range []struct {
			contents ir.Contents
			expected bool
		}{{tuned, true}, {plain, false}} {
			h.snapshot.Store(ir.NewSnapshot(tc.contents))
			h.server.Changed(nil, true)
			<-time.After(time.Minute)
			if got := h.doubtful() == 0; got != tc.expected {
				t.Errorf("a policy has the tuning: %t; want the same for the list to be expected, got %t", tc.expected, got)
			}
		}
	})
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
)

// hostsOf returns so many hosts with a common prefix.
func hostsOf(prefix string, n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}

// TestNamespaceProbes checks that a namespace has a limited number of probed endpoints, that what is
// probed stays, and that nothing is concluded about endpoints that are not probed.
func TestNamespaceProbes(t *testing.T) {
	_, bad, _ := results()
	synctest.Test(t, func(t *testing.T) {
		first := targetOf("web", ir.Delays{Failover: time.Minute}, "a", "b")
		other := targetOf("web", ir.Delays{}, "y")
		other.Key.Namespace = "other"
		large := targetOf("a-large", ir.Delays{Failover: time.Minute, Failback: time.Minute}, append(hostsOf("l", limits.NamespaceProbes), "x")...)
		l := newLab(t, first)
		defer l.stop()
		for _, c := range append(large.Candidates, other.Candidates...) {
			l.net.set(c.Address.Host, l.net.result["a"])
		}
		after(time.Second)
		l.store.set(first, large, other)
		l.p.Changed()
		after(2 * time.Minute)

		counts := func() (probed, unprobed map[string]int) {
			probed, unprobed = map[string]int{}, map[string]int{}
			for _, target := range l.p.Targets(nil) {
				for _, e := range target.Endpoints {
					if e.LastHealthCheck != nil {
						probed[target.Cluster]++
						continue
					}
					unprobed[target.Cluster]++
					if !e.IsHealthy || e.Status != Unknown || e.Reason != reasonUnprobed {
						t.Errorf("%s: want status Unknown with a reason for an endpoint without probes, got %+v", target.Cluster, e)
					}
				}
			}
			return probed, unprobed
		}
		probed, unprobed := counts()
		want := map[string]int{first.Key.ClusterName(): 2, other.Key.ClusterName(): 1, large.Key.ClusterName(): limits.NamespaceProbes - 2}
		if diff := cmp.Diff(want, probed); diff != "" {
			t.Errorf("probed endpoints: what was probed first should stay, and other namespaces are not affected: -want, +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[string]int{large.Key.ClusterName(): 3}, unprobed); diff != "" {
			t.Errorf("endpoints without probes: -want, +got:\n%s", diff)
		}

		for _, c := range large.Candidates {
			l.net.set(c.Address.Host, bad)
		}
		after(5 * time.Minute)
		if got := l.store.placement(large.Key); got.Local || len(got.Unhealthy) != limits.NamespaceProbes-2 {
			t.Errorf("want %d unhealthy endpoints and no delay before a return, as some endpoints are not known to fail; got %d, %t", limits.NamespaceProbes-2, len(got.Unhealthy), got.Local)
		}

		l.store.set(large, other)
		l.p.Changed()
		after(2 * time.Minute)
		if _, unprobed = counts(); unprobed[large.Key.ClusterName()] != 1 {
			t.Errorf("want one endpoint without probes after two others are gone, got %d", unprobed[large.Key.ClusterName()])
		}
	})
}

// TestUnprobedTarget checks that a target without probes does not count as failing.
func TestUnprobedTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, targetOf("a", ir.Delays{}, hostsOf("a", limits.NamespaceProbes)...), targetOf("b", ir.Delays{Failover: time.Second}, "b", "x"))
		defer l.stop()
		after(time.Minute)
		if got := l.store.placement(key("b")); !got.LocalOnly {
			t.Errorf("want local endpoints while nothing is known of them, got %+v", got)
		}
	})
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestFencedHosts checks which hosts nobody may approve.
func TestFencedHosts(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	own := func(deadline time.Time) *v1alpha1.HostFence {
		return &v1alpha1.HostFence{NodeID: "n1", ClusterID: "a", Deadline: metav1.NewTime(deadline)}
	}
	theirs := []registry.Member{{Record: registry.Record{Cluster: "b", Fencing: &registry.Fencing{Fence: &fence.Fence{Node: "n2", Cluster: "b", Deadline: at.Add(time.Minute)}}}}}
	cases := map[string]struct {
		reason  string
		own     *v1alpha1.HostFence
		members []registry.Member
		approve []string
	}{
		"None":    {reason: "Without a fence, all waiting hosts are approved.", approve: []string{"n1", "n2", "n3"}},
		"Own":     {reason: "A host that this cluster has fenced is not.", own: own(at.Add(time.Minute)), approve: []string{"n2", "n3"}},
		"Expired": {reason: "It is once the fence has ended.", own: own(at), approve: []string{"n1", "n2", "n3"}},
		"Other":   {reason: "A fence of another cluster counts, too.", own: own(at.Add(time.Minute)), members: theirs, approve: []string{"n3"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := &v1alpha1.VIPService{}
			v.Status.AtProvider.Fence = tc.own
			e := &external{fenced: fencedHosts(v, tc.members, at)}
			if diff := cmp.Diff(tc.approve, e.unfenced([]string{"n1", "n2", "n3"})); diff != "" {
				t.Errorf("\n%s\nunfenced(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFencedHostDoesNotServe checks that what a dead machine reported last does not count.
func TestFencedHostDoesNotServe(t *testing.T) {
	rs := reports{"n1": {Advertised: true, Accepted: true, Routed: v1alpha1.RoutingTrue, Healthy: 1, Total: 1}}
	hosts := serviceHosts([]tailscale.Host{{NodeID: "n1", Approval: "approved:manual"}},
		[]tailscale.Device{{NodeID: "n1", Name: "web", ConnectedToControl: true}}, rs, nil, map[string]bool{"n1": true})
	if len(hosts) != 1 || hosts[0].Serves() {
		t.Errorf("serviceHosts(...): want a host that does not serve, got %v", hosts)
	}
	if got := rs.routing(offlineHosts(hosts)); got != routingUnhosted {
		t.Errorf("routing(...): want %v, got %v", routingUnhosted, got)
	}
	if got := rs.whole(v1alpha1.VIPServiceObservation{Hosts: hosts}); len(got) != 0 {
		t.Errorf("whole(...): want no host, got %v", got)
	}
}

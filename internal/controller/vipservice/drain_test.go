// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

// TestDrain checks which machines are withdrawn while the service drains, and what the condition says.
func TestDrain(t *testing.T) {
	whole := report{Advertised: true, Accepted: true, Healthy: 1, Total: 1, Ports: []string{"tcp:80"}}
	retired := whole
	retired.Advertised = false
	long, recent := apiTime.Add(-registry.Pause), apiTime.Add(-registry.Pause+time.Second)
	member := func(cluster, node string, draining *time.Time, health registry.Health) registry.Member {
		return registry.Member{Record: registry.Record{Cluster: cluster, Draining: draining, Nodes: []string{node}, Health: &health}, Alive: true}
	}
	serves := registry.Health{Ready: 1, Total: 1, Whole: 1, Score: 100}
	other := v1alpha1.ServiceHost{NodeID: "t1", Online: true, Configured: true, Approval: "approved:auto"}
	offline := other
	offline.Online = false
	soon := apiTime.Add(renewBefore - time.Second)
	type want struct {
		// withdrawn are the machines that are withdrawn, and serving those that serve again.
		withdrawn, serving []string
		status             corev1.ConditionStatus
		reason             xpv2.ConditionReason
	}
	cases := map[string]struct {
		reason   string
		keep     bool
		members  []registry.Member
		reports  reports
		host     v1alpha1.ServiceHost
		end      time.Time
		previous xpv2.Condition
		want     want
	}{
		"Withdraws": {
			reason:  "Once another cluster serves and knows of the drain, all machines withdraw.",
			members: []registry.Member{member("a", "n1", &long, serves), member("b", "t1", nil, serves)},
			reports: reports{"n1": whole, "n2": whole}, host: other,
			want: want{withdrawn: []string{"n1", "n2"}, status: corev1.ConditionFalse, reason: meta.ReasonHostsWithdrawing},
		},
		"Announces": {
			reason:  "Before that the other clusters must be able to learn of it.",
			members: []registry.Member{member("a", "n1", &recent, serves), member("b", "t1", nil, serves)},
			reports: reports{"n1": whole}, host: other,
			want: want{status: corev1.ConditionFalse, reason: meta.ReasonDrainAnnounced},
		},
		"NotRecorded": {
			reason:  "Without a record nobody knows of it.",
			members: []registry.Member{member("a", "n1", nil, serves), member("b", "t1", nil, serves)},
			reports: reports{"n1": whole}, host: other,
			want: want{status: corev1.ConditionFalse, reason: meta.ReasonDrainAnnounced},
		},
		"BothDrain": {
			reason:  "Of two clusters that drain, neither relies on the other.",
			members: []registry.Member{member("a", "n1", &long, serves), member("b", "t1", &long, serves)},
			reports: reports{"n1": whole}, host: other,
			want: want{status: corev1.ConditionFalse, reason: meta.ReasonNoOtherCluster},
		},
		"Alone": {
			reason:  "The only cluster serves.",
			members: []registry.Member{member("a", "n1", &long, serves)},
			reports: reports{"n1": whole}, host: other,
			want: want{status: corev1.ConditionFalse, reason: meta.ReasonNoOtherCluster},
		},
		"OtherOffline": {
			reason:  "A host of another cluster must be connected.",
			members: []registry.Member{member("a", "n1", &long, serves), member("b", "t1", nil, serves)},
			reports: reports{"n1": whole}, host: offline,
			want: want{status: corev1.ConditionFalse, reason: meta.ReasonNoOtherCluster},
		},
		"OtherPartial": {
			reason:  "It must be known to serve all ports.",
			members: []registry.Member{member("a", "n1", &long, serves), member("b", "t1", nil, registry.Health{Ready: 1, Total: 1, Score: 50})},
			reports: reports{"n1": whole}, host: other,
			want: want{status: corev1.ConditionFalse, reason: meta.ReasonNoOtherCluster},
		},
		"Back": {
			reason:  "Withdrawn machines serve again when the other cluster fails.",
			members: []registry.Member{member("a", "n1", &long, serves), member("b", "t1", nil, serves)},
			reports: reports{"n1": retired}, host: offline, end: apiTime.Add(withdrawFor),
			want: want{serving: []string{"n1"}, status: corev1.ConditionFalse, reason: meta.ReasonNoOtherCluster},
		},
		"Drained": {
			reason:  "The drain is complete once no machine advertises.",
			members: []registry.Member{member("a", "n1", &long, serves), member("b", "t1", nil, serves)},
			reports: reports{"n1": retired}, host: other, end: apiTime.Add(withdrawFor),
			want: want{status: corev1.ConditionTrue, reason: meta.ReasonHostsWithdrawn},
		},
		"Renewed": {
			reason:  "A withdrawal is renewed before it ends.",
			members: []registry.Member{member("a", "n1", &long, serves), member("b", "t1", nil, serves)},
			reports: reports{"n1": retired}, host: other, end: soon,
			want: want{withdrawn: []string{"n1"}, status: corev1.ConditionTrue, reason: meta.ReasonHostsWithdrawn},
		},
		"Ended": {
			reason: "A drain that ended leaves no condition that says otherwise.", keep: true,
			members: []registry.Member{member("a", "n1", nil, serves)},
			reports: reports{"n1": retired}, host: other, end: apiTime.Add(withdrawFor),
			previous: drained(corev1.ConditionTrue, meta.ReasonHostsWithdrawn, ""),
			want:     want{status: corev1.ConditionUnknown, reason: meta.ReasonNotRequested},
		},
		"Never": {
			reason: "A service that never drained has no condition.", keep: true,
			members: []registry.Member{member("a", "n1", nil, serves)},
			reports: reports{"n1": whole}, host: other,
			want: want{status: corev1.ConditionUnknown},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := object()
			mg.Spec.ForProvider.Drain = !tc.keep
			mg.Status.AtProvider = v1alpha1.VIPServiceObservation{Name: "svc:web", Ports: []string{"tcp:80"}, Hosts: []v1alpha1.ServiceHost{tc.host}}
			if tc.previous.Reason != "" {
				mg.SetConditions(tc.previous)
			}
			kube := newKube(t, append(machineWithSecret("n1", tc.end), machineWithSecret("n2", tc.end)...)...)
			e := &sharing{external: &external{
				connection: connection{clusterID: "a"}, pods: kubePods{kube: kube}, ports: newPortsCache(), record: &recorder{}, reported: tc.reports,
				hosts: newHostsCache(time.Minute, clocktesting.NewFakePassiveClock(apiTime)),
			}}
			if err := e.observeDrain(t.Context(), mg, registry.View{ServicesAt: apiTime}, tc.members); err != nil {
				t.Fatalf("observeDrain(...): %v", err)
			}
			c := mg.GetCondition(meta.TypeDrained)
			got := want{status: c.Status, reason: c.Reason}
			for _, w := range e.withdraw {
				if id := meta.NodeIDOf(ptr.To(w.machine)); w.end.IsZero() {
					got.serving = append(got.serving, id)
				} else {
					got.withdrawn = append(got.withdrawn, id)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nobserveDrain(...): -want, +got:\n%s", tc.reason, diff)
			}
			if err := e.withdrawHosts(t.Context(), mg); err != nil {
				t.Errorf("\n%s\nwithdrawHosts(...): %v", tc.reason, err)
			}
		})
	}
}

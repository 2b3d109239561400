// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestAcceptanceUnknown makes sure that a machine which does not know whether control accepted it
// is not treated as one that control did not accept.
func TestAcceptanceUnknown(t *testing.T) {
	approved := tailscale.Host{NodeID: "n1", State: "pending", Approval: "approved:manual"}
	cases := map[string]struct {
		reason   string
		agent    v1alpha1.MachineAgentStatus
		host     tailscale.Host
		accepted bool
		healthy  bool
	}{
		"NotAccepted": {
			reason: "A machine that control did not accept is not configured, even if approved.",
			agent:  v1alpha1.MachineAgentStatus{Services: []v1alpha1.HostedService{{Name: "svc:web", Advertised: true}}},
			host:   approved,
		},
		"Unknown": {
			reason:   "An approved machine that does not know it counts as configured.",
			agent:    v1alpha1.MachineAgentStatus{AcceptanceUnknown: true, Services: []v1alpha1.HostedService{{Name: "svc:web", Advertised: true}}},
			host:     approved,
			accepted: true, healthy: true,
		},
		"UnknownNotApproved": {
			reason:   "Without an approval, the API's word counts.",
			agent:    v1alpha1.MachineAgentStatus{AcceptanceUnknown: true, Services: []v1alpha1.HostedService{{Name: "svc:web", Advertised: true}}},
			host:     tailscale.Host{NodeID: "n1", State: "pending"},
			accepted: true,
		},
		"UnknownButNotAdvertised": {
			reason:   "A machine that does not advertise is not configured.",
			agent:    v1alpha1.MachineAgentStatus{AcceptanceUnknown: true, Services: []v1alpha1.HostedService{{Name: "svc:web"}}},
			host:     approved,
			accepted: true,
		},
		"UnknownForOthers": {
			reason:   "An accepted service is known to be accepted.",
			agent:    v1alpha1.MachineAgentStatus{AcceptanceUnknown: true, Services: []v1alpha1.HostedService{{Name: "svc:web", Advertised: true, Accepted: true}}},
			host:     approved,
			accepted: true, healthy: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{meta.AnnotationNodeID: "n1"}}}
			m.Status.Agent = &tc.agent
			rs := agentReports([]v1alpha1.Machine{m}, "svc:web")
			if got := rs.accepted(); got != tc.accepted {
				t.Errorf("\n%s\naccepted(): want %t, got %t", tc.reason, tc.accepted, got)
			}
			if got := rs.configured(tc.host); got != tc.healthy {
				t.Errorf("\n%s\nconfigured(...): want %t, got %t", tc.reason, tc.healthy, got)
			}

			// Tags that differ are a problem only of a machine that control did not accept.
			mg := &v1alpha1.VIPService{}
			mg.Spec.ForProvider.Tags = []v1alpha1.Tag{"tag:web"}
			observeTags(mg, rs, []tailscale.Device{{NodeID: "n1", Name: "n1"}})
			if got := mg.GetCondition(meta.TypeHostTagsMatch).Status == corev1.ConditionFalse; got == tc.accepted {
				t.Errorf("\n%s\nobserveTags(...): want a condition %t, got %t", tc.reason, !tc.accepted, got)
			}
		})
	}
}

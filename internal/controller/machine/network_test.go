// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestReportNetwork(t *testing.T) {
	problem := &v1alpha1.NetworkProblem{Reason: "NoTunDevice", Message: "set kernel.privileged"}
	failed := xpv2.Condition{Type: meta.TypeNetworkReady, Status: corev1.ConditionFalse, Reason: meta.ReasonNoTunDevice, Message: "set kernel.privileged"}
	usable := xpv2.Condition{Type: meta.TypeNetworkReady, Status: corev1.ConditionTrue, Reason: meta.ReasonNetworkUsable}
	none := xpv2.Condition{Type: meta.TypeNetworkReady, Status: corev1.ConditionUnknown}
	cases := map[string]struct {
		reason   string
		previous []xpv2.Condition
		agent    *v1alpha1.MachineAgentStatus
		want     xpv2.Condition
	}{
		"NoReport":  {reason: "Without a report nothing is known.", want: none},
		"NoProblem": {reason: "A machine without a problem needs no condition.", agent: &v1alpha1.MachineAgentStatus{}, want: none},
		"Problem":   {reason: "A problem is a condition with what to do.", agent: &v1alpha1.MachineAgentStatus{Network: problem}, want: failed},
		"Solved":    {reason: "A condition says that the problem is gone.", previous: []xpv2.Condition{failed}, agent: &v1alpha1.MachineAgentStatus{}, want: usable},
		"Restarted": {reason: "A problem stays until a pod reports.", previous: []xpv2.Condition{failed}, want: failed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := &v1alpha1.Machine{}
			mg.SetConditions(tc.previous...)
			mg.Status.Agent = tc.agent
			reportNetwork(mg)
			if diff := cmp.Diff(tc.want, mg.GetCondition(meta.TypeNetworkReady), cmpopts.IgnoreFields(xpv2.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("\n%s\nreportNetwork(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

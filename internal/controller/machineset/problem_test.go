// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestProblem(t *testing.T) {
	machine := func(change func(m *v1alpha1.Machine)) *v1alpha1.Machine {
		m := &v1alpha1.Machine{}
		m.Status.AtProvider = v1alpha1.MachineObservation{NodeID: "n1", Online: ptr.To(true), Authorized: ptr.To(true)}
		m.SetConditions(xpv2.Available())
		change(m)
		return m
	}
	cases := map[string]struct {
		reason string
		m      *v1alpha1.Machine
		want   string
	}{
		"Ready": {reason: "A machine in the tailnet has no problem.", m: machine(func(*v1alpha1.Machine) {})},
		"Locked": {
			reason: "The message names the tailnet lock's refusal of a device, even if it has further effects.",
			m: machine(func(m *v1alpha1.Machine) {
				m.Status.AtProvider.Online = ptr.To(false)
				m.SetConditions(xpv2.Condition{Type: xpv2.TypeReady, Status: corev1.ConditionFalse, Reason: meta.ReasonTailnetLocked, Message: "sign it"})
			}),
			want: "sign it",
		},
		"NoTunDevice": {
			reason: "A machine that has not joined because of its node says so.",
			m: machine(func(m *v1alpha1.Machine) {
				m.Status.AtProvider = v1alpha1.MachineObservation{}
				m.Status.Agent = &v1alpha1.MachineAgentStatus{Network: &v1alpha1.NetworkProblem{Reason: "NoTunDevice", Message: "no device"}}
			}),
			want: "no device",
		},
		"PacketsDropped": {
			reason: "A problem of the node does not make a machine unready that is in the tailnet.",
			m: machine(func(m *v1alpha1.Machine) {
				m.Status.Agent = &v1alpha1.MachineAgentStatus{Network: &v1alpha1.NetworkProblem{Reason: "ForwardedPacketsDropped", Message: "dropped"}}
			}),
		},
		"Unauthorized": {
			reason: "A device may wait for an admin.",
			m:      machine(func(m *v1alpha1.Machine) { m.Status.AtProvider.Authorized = ptr.To(false) }),
			want:   "Waiting for an admin of the tailnet to authorize the device",
		},
		"Deleted": {
			reason: "A machine that is being deleted is reported as such.",
			m:      machine(func(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{} }),
			want:   "The machine is being deleted",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := problem(tc.m); got != tc.want {
				t.Errorf("\n%s\nproblem(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

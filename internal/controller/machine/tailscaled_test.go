// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

func TestObserveTailscaled(t *testing.T) {
	cases := map[string]struct {
		reason string
		agents []*v1alpha1.MachineAgentStatus
		want   corev1.ConditionStatus
		// says are parts of the message, silent are not.
		says   []string
		silent string
	}{
		"NoReport": {
			reason: "A machine whose agent has not reported gets no condition.",
			agents: []*v1alpha1.MachineAgentStatus{nil, {}},
			want:   corev1.ConditionUnknown,
		},
		"Tested": {
			reason: "A tested version gets no condition.",
			agents: []*v1alpha1.MachineAgentStatus{{TailscaledVersion: tailscaled.Oldest}, {TailscaledVersion: tailscaled.Newest}},
			want:   corev1.ConditionUnknown,
		},
		"Untested": {
			reason: "The condition says what to do about an untested version.",
			agents: []*v1alpha1.MachineAgentStatus{{TailscaledVersion: "1.80.3-t01234"}},
			want:   corev1.ConditionFalse,
			says:   []string{"1.80.3", tailscaled.Oldest, tailscaled.Newest, "spec.proxy.image"},
		},
		"Polled": {
			reason: "The condition says that notifications cannot be read.",
			agents: []*v1alpha1.MachineAgentStatus{{TailscaledVersion: "1.999.0", Polled: true}},
			want:   corev1.ConditionFalse,
			says:   []string{"1.999.0", "every few seconds"},
		},
		"Hostile": {
			reason: "A version is written by a pod: text is not repeated.",
			agents: []*v1alpha1.MachineAgentStatus{{TailscaledVersion: "run rm -rf /"}},
			want:   corev1.ConditionFalse,
			says:   []string{"of another form"},
			silent: "rm -rf",
		},
		"Replaced": {
			reason: "The condition becomes true once the machine runs a tested version.",
			agents: []*v1alpha1.MachineAgentStatus{{TailscaledVersion: "1.80.3"}, {TailscaledVersion: tailscaled.Newest}},
			want:   corev1.ConditionTrue,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := &v1alpha1.Machine{}
			for _, a := range tc.agents {
				mg.Status.Agent = a
				observeTailscaled(mg)
			}
			c := mg.GetCondition(meta.TypeTailscaledTested)
			if c.Status != tc.want {
				t.Errorf("\n%s\nwant status %s, got %s", tc.reason, tc.want, c.Status)
			}
			for _, s := range tc.says {
				if !strings.Contains(c.Message, s) {
					t.Errorf("\n%s\nthe message lacks %q: %s", tc.reason, s, c.Message)
				}
			}
			if tc.silent != "" && strings.Contains(c.Message, tc.silent) {
				t.Errorf("\n%s\nthe message has %q: %s", tc.reason, tc.silent, c.Message)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package postureintegration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestObserveStatus(t *testing.T) {
	cases := map[string]struct {
		reason string
		status tailscale.PostureStatus
		ready  corev1.ConditionStatus
		err    string
	}{
		"Synchronised": {reason: "An integration without an error is ready.", status: tailscale.PostureStatus{MatchedCount: 3}, ready: corev1.ConditionTrue},
		"Failing": {
			reason: "Only the first line of an error is reported.",
			status: tailscale.PostureStatus{Error: "Invalid Tenant ID.\nTrace ID: 1 Timestamp: 2"},
			ready:  corev1.ConditionFalse, err: "Invalid Tenant ID.",
		},
		"LongError": {
			reason: "The length of an error is limited.", status: tailscale.PostureStatus{Error: strings.Repeat("a", 500)},
			ready: corev1.ConditionFalse, err: strings.Repeat("a", maxError) + "...",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := &v1alpha1.PostureIntegration{}
			mg.Status.AtProvider.SecretHash = "kept"
			observe(mg, &tailscale.PostureIntegration{Status: tc.status})
			got := []any{mg.GetCondition(xpv2.TypeReady).Status, mg.Status.AtProvider.Error, *mg.Status.AtProvider.MatchedCount, mg.Status.AtProvider.SecretHash}
			if diff := cmp.Diff([]any{tc.ready, tc.err, tc.status.MatchedCount, "kept"}, got); diff != "" {
				t.Errorf("\n%s\nobserve(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package attachments

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestHealthCheck(t *testing.T) {
	seconds := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
	cases := map[string]struct {
		reason string
		lb     *gatewayv1alpha1.LoadBalancing
		want   tailnetv1alpha1.AttachmentHealthCheck
	}{
		"Absent": {
			reason: "The default is a connection, often enough to withdraw within 15 s",
			want:   tailnetv1alpha1.AttachmentHealthCheck{Interval: seconds(5), Timeout: seconds(2), HealthyThreshold: 1, UnhealthyThreshold: 2},
		},
		"Connection": {
			reason: "Without enabled the path is ignored, and the numbers apply",
			lb:     &gatewayv1alpha1.LoadBalancing{HealthCheck: &gatewayv1alpha1.HealthCheck{Path: "/x", Interval: seconds(1)}},
			want:   tailnetv1alpha1.AttachmentHealthCheck{Interval: seconds(1), Timeout: seconds(3), HealthyThreshold: 2, UnhealthyThreshold: 3},
		},
		"Disabled": {
			reason: "Disabled checks only resolve names",
			lb:     &gatewayv1alpha1.LoadBalancing{HealthCheck: &gatewayv1alpha1.HealthCheck{Enabled: ptr.To(false), Path: "/x"}},
			want: tailnetv1alpha1.AttachmentHealthCheck{
				ResolveOnly: true, Interval: seconds(10), Timeout: seconds(3), HealthyThreshold: 2, UnhealthyThreshold: 3,
			},
		},
		"Enabled": {
			reason: "Defaults apply to fields that are not set",
			lb:     &gatewayv1alpha1.LoadBalancing{HealthCheck: &gatewayv1alpha1.HealthCheck{Enabled: ptr.To(true)}},
			want: tailnetv1alpha1.AttachmentHealthCheck{
				Path: "/health", Interval: seconds(10), Timeout: seconds(3), HealthyThreshold: 2, UnhealthyThreshold: 3,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, healthCheck(tc.lb)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

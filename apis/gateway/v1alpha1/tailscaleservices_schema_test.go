// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
)

func TestTailscaleServicesSchema(t *testing.T) {
	const rest = "\n  selector: {matchLabels: {app: web}}\n  backends: [{name: web, port: 80}]"
	spec := func(lines string) string {
		return "metadata: {name: web}\nspec:\n  " + strings.ReplaceAll(lines, "\n", "\n  ") + rest
	}
	const vip = "vipService: {ports: ['tcp:80']}"

	cases := map[string]struct {
		reason string
		obj    string
		old    string
		want   string
	}{
		"Least": {
			reason: "What must be said is enough.",
			obj:    spec(vip),
		},
		"Shared": {
			reason: "A service may be shared.",
			obj:    spec(vip + "\nsharing: Shared"),
		},
		"BecomesShared": {
			reason: "A service that was exclusive may become shared.",
			obj:    spec(vip + "\nsharing: Shared"),
			old:    spec(vip),
		},
		"NoLongerShared": {
			reason: "Other clusters would lose it.",
			obj:    spec(vip),
			old:    spec(vip + "\nsharing: Shared"),
			want:   "sharing cannot go back from Shared to Exclusive",
		},
		"SharedByHalves": {
			reason: "There are two ways to share.",
			obj:    spec(vip + "\nsharing: Half"),
			want:   "spec.sharing: Unsupported value",
		},
		"ReservedAnnotation": {
			reason: "The provider's own annotations are not the user's to set.",
			obj:    spec("vipService: {ports: ['tcp:80'], annotations: {gateway.tailscale.com/owner: me}}"),
			want:   "not begin with gateway.tailscale.com/",
		},
		"LongDisplayName": {
			reason: "Tailscale takes 64 characters.",
			obj:    spec("vipService: {ports: ['tcp:80'], displayName: " + strings.Repeat("x", 65) + "}"),
			want:   "spec.vipService.displayName: Too long",
		},
		"RecordTag": {
			reason: "A tag is a tag.",
			obj:    spec("vipService: {ports: ['tcp:80'], recordTags: [record]}"),
			want:   "must be tag: followed by a letter",
		},
		"OtherName": {
			reason: "A service that is renamed would be another one.",
			obj:    spec("vipService: {ports: ['tcp:80'], name: svc:b}"),
			old:    spec("vipService: {ports: ['tcp:80'], name: svc:a}"),
			want:   "is immutable",
		},
		"Weighted": {
			reason: "The schema takes what a Gateway can do.",
			obj:    spec(vip + "\nloadBalancing: {strategy: weighted, weights: {web: 2}}"),
		},
		"WeightedWithoutWeights": {
			reason: "Weights must be said.",
			obj:    spec(vip + "\nloadBalancing: {strategy: weighted}"),
			want:   "strategy weighted needs weights",
		},
		"WeightsWithoutStrategy": {
			reason: "Weights would mean nothing.",
			obj:    spec(vip + "\nloadBalancing: {weights: {web: 2}}"),
			want:   "weights need strategy weighted",
		},
		"NegativeWeight": {
			reason: "A weight is a share.",
			obj:    spec(vip + "\nloadBalancing: {strategy: weighted, weights: {web: -1}}"),
			want:   "should be greater than or equal to 0",
		},
		"Failover": {
			reason: "The schema takes what a Gateway can do.",
			obj:    spec(vip + "\nloadBalancing: {strategy: failover, failover: {primary: a, secondary: [b]}}"),
		},
		"FailoverWithoutStrategy": {
			reason: "A failover would mean nothing.",
			obj:    spec(vip + "\nloadBalancing: {failover: {primary: a, secondary: [b]}}"),
			want:   "strategy failover needs failover",
		},
		"FailoverToItself": {
			reason: "A backend cannot take over from itself.",
			obj:    spec(vip + "\nloadBalancing: {strategy: failover, failover: {primary: a, secondary: [a]}}"),
			want:   "secondary must not list primary",
		},
		"NoHealthCheck": {
			reason: "Probes can be turned off.",
			obj:    spec(vip + "\nloadBalancing: {healthCheck: {enabled: false}}"),
		},
		"Threshold": {
			reason: "No answer at all makes no backend healthy.",
			obj:    spec(vip + "\nloadBalancing: {healthCheck: {healthyThreshold: 0}}"),
			want:   "should be greater than or equal to 1",
		},
	}
	c := load(t, "tailscaleservices")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.validate(t, parse(t, tc.obj), parse(t, tc.old)).ToAggregate()
			if tc.want == "" && err != nil {
				t.Errorf("%s: want no error, got %v", tc.reason, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

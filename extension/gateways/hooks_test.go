// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestHooks(t *testing.T) {
	at := func(second int) *metav1.Time {
		return ptr.To(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)))
	}
	hooks := func(total, failed int64, last *metav1.Time) *tailnetv1alpha1.ReportedHooks {
		return &tailnetv1alpha1.ReportedHooks{Total: total, Failed: failed, LastCall: last}
	}
	type args struct {
		reported         tailnetv1alpha1.ReportedHooks
		counts, inReport *tailnetv1alpha1.ReportedHooks
	}
	cases := map[string]struct {
		reason string
		args   args
		want   *tailnetv1alpha1.ReportedHooks
	}{
		"None": {
			reason: "A replica without hooks adds none.",
			args:   args{inReport: hooks(5, 1, at(5))},
		},
		"Reported": {
			reason: "Reported hooks are not added again.",
			args:   args{reported: *hooks(3, 1, at(3)), counts: hooks(3, 1, at(3)), inReport: hooks(5, 1, at(5))},
		},
		"First": {
			reason: "A report without hooks gets those of the replica.",
			args:   args{counts: hooks(3, 1, at(3))},
			want:   hooks(3, 1, at(3)),
		},
		"Others": {
			reason: "A replica adds its new hooks to those of other replicas.",
			args:   args{reported: *hooks(3, 1, at(3)), counts: hooks(7, 2, at(7)), inReport: hooks(10, 4, at(5))},
			want:   hooks(14, 5, at(7)),
		},
		"OthersLater": {
			reason: "The last call is the latest of all replicas.",
			args:   args{counts: hooks(1, 0, at(3)), inReport: hooks(10, 4, at(5))},
			want:   hooks(11, 4, at(5)),
		},
		"Forgotten": {
			reason: "A replica whose counts were reset counts from zero, and subtracts nothing.",
			args:   args{reported: *hooks(9, 2, at(3)), counts: hooks(2, 1, at(7)), inReport: hooks(10, 4, at(5))},
			want:   hooks(12, 5, at(7)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *tailnetv1alpha1.ReportedHooks
			if more := newHooks(tc.args.reported, tc.args.counts); more != nil {
				got = addedHooks(tc.args.inReport, *more)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

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
		return &tailnetv1alpha1.ReportedHooks{Total: total, Failed: failed, Last: last}
	}
	type args struct {
		told          tailnetv1alpha1.ReportedHooks
		now, inReport *tailnetv1alpha1.ReportedHooks
	}
	cases := map[string]struct {
		reason string
		args   args
		want   *tailnetv1alpha1.ReportedHooks
	}{
		"None": {
			reason: "A replica that nobody asks tells nothing",
			args:   args{inReport: hooks(5, 1, at(5))},
		},
		"Told": {
			reason: "What was told is not told again",
			args:   args{told: *hooks(3, 1, at(3)), now: hooks(3, 1, at(3)), inReport: hooks(5, 1, at(5))},
		},
		"First": {
			reason: "A report that knows of none has those of the replica",
			args:   args{now: hooks(3, 1, at(3))},
			want:   hooks(3, 1, at(3)),
		},
		"Others": {
			reason: "A replica adds what is new to what others told",
			args:   args{told: *hooks(3, 1, at(3)), now: hooks(7, 2, at(7)), inReport: hooks(10, 4, at(5))},
			want:   hooks(14, 5, at(7)),
		},
		"OthersLater": {
			reason: "The last call is the latest of all replicas",
			args:   args{now: hooks(1, 0, at(3)), inReport: hooks(10, 4, at(5))},
			want:   hooks(11, 4, at(5)),
		},
		"Forgotten": {
			reason: "A replica that forgot a Gateway counts anew, and takes nothing away",
			args:   args{told: *hooks(9, 2, at(3)), now: hooks(2, 1, at(7)), inReport: hooks(10, 4, at(5))},
			want:   hooks(12, 5, at(7)),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *tailnetv1alpha1.ReportedHooks
			if more := newHooks(tc.args.told, tc.args.now); more != nil {
				got = addedHooks(tc.args.inReport, *more)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutcomes(t *testing.T) {
	cases := map[string]struct {
		reason  string
		summary Summary
		stale   int
		want    map[string]int
	}{
		"Translated": {
			reason:  "Each count of the summary has its value of the label.",
			summary: Summary{Shared: 1, Dedicated: 2, Removed: 3, Rules: 4, Split: 5, FailingOver: 9, Inserted: 6, Denied: 7},
			stale:   8,
			want: map[string]int{
				"cluster-shared": 1, "cluster-dedicated": 2, "cluster-removed": 3, "rule-translated": 4,
				"rule-split": 5, "cluster-failover": 9, "route-inserted": 6, "route-denied": 7, "answer-stale": 8,
			},
		},
		"Skipped": {
			reason:  "Skipped rules are counted by the reason, in lower case as the other values.",
			summary: Summary{Skipped: map[Reason]int{Stale: 1, Unresolved: 2}},
			want: map[string]int{
				"cluster-shared": 0, "cluster-dedicated": 0, "cluster-removed": 0, "rule-translated": 0,
				"rule-split": 0, "cluster-failover": 0, "route-inserted": 0, "route-denied": 0, "answer-stale": 0,
				"rule-skipped-stale": 1, "rule-skipped-unresolved": 2,
			},
		},
	}
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	reason := regexp.MustCompile(`^rule-skipped-[a-z]+$`)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.summary.Outcomes(tc.stale)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for v := range got {
				if !strings.Contains(string(page), reason.ReplaceAllString(v, "rule-skipped-REASON")) {
					t.Errorf("docs/reference/metrics.md does not explain the outcome %q", v)
				}
			}
		})
	}
}

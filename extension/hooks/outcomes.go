// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import "strings"

// Outcomes returns the counts of a translation by the values of the label outcome of metrics. Skipped
// rules have one value for each reason: rule-skipped- and the reason in lower case, such as
// rule-skipped-stale. Stale is the number of answers that Envoy Gateway has to ask for again, because
// the snapshot changed since.
func (s Summary) Outcomes(stale int) map[string]int {
	counts := map[string]int{
		"cluster-shared":    s.Shared,
		"cluster-dedicated": s.Dedicated,
		"cluster-removed":   s.Removed,
		"rule-translated":   s.Rules,
		"rule-split":        s.Split,
		"cluster-failover":  s.FailingOver,
		"route-inserted":    s.Inserted,
		"route-denied":      s.Denied,
		"answer-stale":      stale,
	}
	for reason, n := range s.Skipped {
		counts["rule-skipped-"+strings.ToLower(string(reason))] += n
	}
	return counts
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import "strings"

// Values of the label outcome of the metrics of translations. Skipped rules have one value for each
// reason: rule-skipped- and the reason in lower case, such as rule-skipped-stale.
const (
	OutcomeClusterShared    = "cluster-shared"
	OutcomeClusterDedicated = "cluster-dedicated"
	OutcomeClusterRemoved   = "cluster-removed"
	OutcomeRuleTranslated   = "rule-translated"
	OutcomeRuleSplit        = "rule-split"
	OutcomeRouteInserted    = "route-inserted"
	OutcomeRouteDenied      = "route-denied"
	OutcomeAnswerStale      = "answer-stale"

	outcomeSkipped = "rule-skipped-"
)

// Outcomes returns the counts of a translation by the values of the label outcome. Stale is the
// number of answers that Envoy Gateway has to ask for again, because the snapshot changed since.
func (s Summary) Outcomes(stale int) map[string]int {
	counts := map[string]int{
		OutcomeClusterShared:    s.Shared,
		OutcomeClusterDedicated: s.Dedicated,
		OutcomeClusterRemoved:   s.Removed,
		OutcomeRuleTranslated:   s.Rules,
		OutcomeRuleSplit:        s.Split,
		OutcomeRouteInserted:    s.Inserted,
		OutcomeRouteDenied:      s.Denied,
		OutcomeAnswerStale:      stale,
	}
	for reason, n := range s.Skipped {
		counts[outcomeSkipped+strings.ToLower(string(reason))] += n
	}
	return counts
}

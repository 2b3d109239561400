// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import "testing"

// TestQuickstart walks through the life of the quickstart. The steps share one
// cluster and build on each other, so the first that fails ends the walk.
func TestQuickstart(t *testing.T) {
	demo(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answers},
		{"ReadyMeansAnswers", readyMeansAnswers},
		{"RoutesToServices", routesToServices},
		{"TellsWhatAPersonNeeds", tells},
		{"TracesWholeTree", traces},
		{"RunsRestricted", runsRestricted},
		{"EntersTailnet", entersTailnet},
		{"RollsEgress", rollsEgress},
		{"AddsDirection", addsDirection},
		{"ServesManyWays", servesManyWays},
		{"WithdrawsSickBackend", withdraws},
		{"StandsAlone", standsAlone},
		{"RejectsBadInput", rejects},
		{"ReportsBadCredentials", reportsCredentials},
		{"LeaksNoSecret", leaksNoSecret},
		{"ScalesWithoutRestart", scales},
		{"DeletesExample", deletesExample},
		{"SurvivesKilledPods", survives},
		{"RecoversLostNode", recovers},
		{"DeletesNamespace", deletesNamespace},
		{"DeletesAllTogether", deletesAllTogether},
		{"NeverOpensCircuitBreaker", breakerStaysClosed},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

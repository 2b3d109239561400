// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import "testing"

// TestQuickstart runs the quickstart from creation to deletion. The steps share one cluster and
// build on each other, so the first failure ends the test.
func TestQuickstart(t *testing.T) {
	demo(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Answers", answers},
		{"ReadyMeansAnswers", readyMeansAnswers},
		{"RoutesToServices", routesToServices},
		{"ShowsColumns", showsColumns},
		{"TracesWholeTree", traces},
		{"RunsRestricted", runsRestricted},
		{"ReachesTargets", reachesTargets},
		{"RollsEgress", rollsEgress},
		{"AddsDirection", addsDirection},
		{"ServesInParallel", servesInParallel},
		{"WithdrawsUnhealthyBackend", withdrawsBackend},
		{"WorksWithoutControllers", worksWithoutControllers},
		{"RejectsBadInput", rejects},
		{"ReportsBadCredentials", reportsCredentials},
		{"LeaksNoSecret", leaksNoSecret},
		{"ScalesWithoutRestart", scales},
		{"RefusesToUninstall", refusesToUninstall},
		{"DeletesExample", deletesExample},
		{"SurvivesKilledPods", survives},
		{"RecoversLostNode", recovers},
		{"DeletesNamespace", deletesNamespace},
		{"DeletesAllTogether", deletesAllTogether},
		{"NeverOpensCircuitBreaker", breakerStaysClosed},
		{"Uninstalls", uninstalls},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
}

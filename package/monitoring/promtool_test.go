//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// promtool returns the path of Prometheus' promtool, at the version that its go.mod pins. The
// first call builds it, which takes minutes. TEST_ASSET_PROMTOOL overrides the path.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program := []string{"go", "tool", "-modfile=../../hack/tools/promtool/go.mod", "promtool"}
	if path := os.Getenv("TEST_ASSET_PROMTOOL"); path != "" {
		program = []string{path}
	}
	program = append(program, args...)
	cmd := exec.CommandContext(t.Context(), program[0], program[1:]...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// TestRules has alerts fire, and not fire, over series that are made up.
func TestRules(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "../charts/tailscale-gateway/files/rules.yaml")
	promtool(t, "test", "rules", "rules_test.yaml")
}

// TestEveryAlertIsTested finds alerts that the rule tests forgot.
func TestEveryAlertIsTested(t *testing.T) {
	b, err := os.ReadFile("rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range alerts(t) {
		if !strings.Contains(string(b), "alertname: "+r.Alert+"\n") {
			t.Errorf("no rule test is about %s", r.Alert)
		}
	}
}

// TestQueries reads each query of the dashboard as Prometheus does.
func TestQueries(t *testing.T) {
	g := group{Name: "dashboard"}
	queries := panelQueries(t)
	for _, title := range slices.Sorted(maps.Keys(queries)) {
		for _, q := range queries[title] {
			g.Rules = append(g.Rules, rule{Record: fmt.Sprintf("panel:query:%d", len(g.Rules)), Expr: q})
		}
	}
	b, err := yaml.Marshal(groups{Groups: []group{g}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

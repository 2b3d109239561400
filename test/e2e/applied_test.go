// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// appliedElsewhere are folders of examples that a test applies as a whole.
var appliedElsewhere = map[string]string{
	"examples/design":     "../apiserver/design_test.go",
	"examples/managed":    "../integration/examples_test.go",
	"examples/quickstart": "../../cluster/demo/quickstart.go",
}

// TestEveryExampleIsApplied compares the example files with the paths in end-to-end tests and the
// demo.
func TestEveryExampleIsApplied(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"*.go", "../../cluster/demo/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("cannot find %s: %v", pattern, err)
		}
		for _, f := range files {
			// The upgrade waits less for each example.
			if f != upgradeExamples {
				sources = append(sources, f)
			}
		}
	}
	for dir, file := range appliedElsewhere {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if s := string(b); !strings.Contains(s, dir) && !strings.Contains(s, `"examples", "`+filepath.Base(dir)) {
			t.Errorf("%s no longer applies %s", file, dir)
		}
	}
	for dir := range appliedAsFolders {
		if appliedElsewhere[dir] == "" {
			t.Errorf("no test is known that applies %s", dir)
		}
	}
	namesAll(t, sources...)
}

// upgradeExamples applies all examples before an upgrade.
const upgradeExamples = "upgradeexamples_test.go"

// TestEveryExampleIsUpgraded compares the example files with the paths in the test of upgrades.
func TestEveryExampleIsUpgraded(t *testing.T) {
	namesAll(t, upgradeExamples)
}

func namesAll(t *testing.T, sources ...string) {
	t.Helper()
	missing, err := unnamedExamples("../..", sources...)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range missing {
		t.Errorf("no end-to-end test applies %s", path)
	}
}

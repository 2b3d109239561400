// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// appliedElsewhere are folders of examples that a test applies as a whole.
var appliedElsewhere = map[string]string{
	"examples/managed":    "../integration/examples_test.go",
	"examples/quickstart": "../../cluster/demo/quickstart.go",
}

// TestEveryExampleIsApplied compares the example files with the paths in end-to-end tests and the
// demo.
func TestEveryExampleIsApplied(t *testing.T) {
	var sources strings.Builder
	for _, pattern := range []string{"*.go", "../../cluster/demo/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("cannot find %s: %v", pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(b)
		}
	}
	for dir, by := range appliedElsewhere {
		b, err := os.ReadFile(by)
		if err != nil {
			t.Fatal(err)
		}
		if s := string(b); !strings.Contains(s, dir) && !strings.Contains(s, `"examples", "`+filepath.Base(dir)) {
			t.Errorf("%s no longer applies %s", by, dir)
		}
	}
	root := os.DirFS("../..")
	examples := 0
	if err := fs.WalkDir(root, "examples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		examples++
		if _, ok := appliedElsewhere[filepath.Dir(path)]; ok {
			return nil
		}
		if !strings.Contains(sources.String(), `"`+path+`"`) {
			t.Errorf("no end-to-end test applies %s", path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if examples == 0 {
		t.Fatal("there are no examples")
	}
}

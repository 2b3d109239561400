// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// appliedAsFolders are folders of examples that a test applies as a whole.
var appliedAsFolders = map[string]bool{"examples/design": true, "examples/managed": true, "examples/quickstart": true}

// unapplied are folders of examples that no end-to-end test applies. Their objects need the controllers of Argo CD
// or Flux, and package gitops checks them.
var unapplied = []string{"examples/gitops/"}

// unnamedExamples returns the examples of a tree that a source file does not name. Those of folders
// that are applied as a whole are left out.
func unnamedExamples(tree string, sources ...string) ([]string, error) {
	var text strings.Builder
	for _, f := range sources {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		text.Write(b)
	}
	var out []string
	examples := 0
	err := fs.WalkDir(os.DirFS(tree), "examples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		examples++
		if slices.ContainsFunc(unapplied, func(dir string) bool { return strings.HasPrefix(path, dir) }) {
			return nil
		}
		if !appliedAsFolders[filepath.Dir(path)] && !strings.Contains(text.String(), `"`+path+`"`) {
			out = append(out, path)
		}
		return nil
	})
	if err == nil && examples == 0 {
		err = errors.New("there are no examples")
	}
	return out, err
}

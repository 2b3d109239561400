// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestSmall checks that examples remain manifests, and that all their proxies request little.
func TestSmall(t *testing.T) {
	proxies := 0
	err := fs.WalkDir(os.DirFS(root), "examples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		b, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		for _, doc := range strings.Split(Small(string(b)), "\n---\n") {
			o := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if o["kind"] == "CompositeResourceDefinition" {
				continue
			}
			proxies += small(t, path, o)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if proxies < 20 {
		t.Errorf("only %d settings of proxies request little", proxies)
	}
}

// small counts the settings of proxies in a value that request little CPU, and reports requests for
// more.
func small(t *testing.T, path string, v any) int {
	t.Helper()
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for k, f := range v {
			if k == "cpu" && f != "1m" && f != "500m" { // The other value is a limit.
				t.Errorf("%s: a request for %v CPUs", path, f)
			}
			if p, ok := f.(map[string]any); ok && k == "proxy" && p["resources"] != nil {
				n++
			}
			n += small(t, path, f)
		}
	case []any:
		for _, f := range v {
			n += small(t, path, f)
		}
	}
	return n
}

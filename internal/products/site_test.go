// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package products

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSite checks that the site is built and published for the address at which it is served.
func TestSite(t *testing.T) {
	for name, want := range map[string]string{
		"mkdocs.yml": `site_url: !ENV [SITE_URL, "` + Site + `/main/"]`,
		"Makefile":   "PAGES_URL ?= " + Site + "\n",
	} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), want) {
			t.Errorf("%s has no %q", name, want)
		}
	}
}

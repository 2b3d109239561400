// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package products

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// owned matches names of the repository, of its files, of products, of their objects, and of teams, each with
// the owner as the first submatch that is not empty.
var owned = regexp.MustCompile(strings.Join([]string{
	`\b(?:github\.com|raw\.githubusercontent\.com|api\.github\.com/repos|pkg\.go\.dev/github\.com)/([\w-]+)/tailscale-gateway\b`,
	`\b([\w-]+)\.github\.io/tailscale-gateway\b`,
	`\bghcr\.io/([\w-]+)/(?:charts|agent|extension|(?:provider|function|configuration)-tailscale(?:-gateway)?(?:-claims)?)\b`,
	`\b([a-z][\w-]*?)-(?:(?:provider|function)-tailscale|configuration-tailscale-gateway(?:-claims)?)\b`,
	`@([\w-]+)/(?:maintainers|security)\b`,
}, "|"))

// owners returns the owners that a text names.
func owners(text string) []string {
	var out []string
	for _, m := range owned.FindAllStringSubmatch(text, -1) {
		// terraform-provider-tailscale is Tailscale's.
		if o := strings.Join(m[1:], ""); o != "terraform" {
			out = append(out, o)
		}
	}
	return out
}

// TestOwner checks that no file of the repository names another owner than Owner. After a change of Owner, it
// lists each name to replace.
func TestOwner(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list files: %v", err)
	}
	found := 0
	for _, name := range strings.Split(strings.Trim(string(list), "\x00"), "\x00") {
		if name == "internal/products/owner_test.go" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			// It is deleted, and git still lists it.
			continue
		}
		if err != nil {
			// A link to a folder has no text.
			if info, statErr := os.Stat(filepath.Join(root, name)); statErr == nil && info.IsDir() {
				continue
			}
			t.Fatal(err)
		}
		others := map[string]int{}
		for _, o := range owners(string(b)) {
			if o == Owner {
				found++
				continue
			}
			others[o]++
		}
		for o, n := range others {
			t.Errorf("%s names the owner %q %d times; Owner is %q", name, o, n, Owner)
		}
	}
	if found < 1000 {
		t.Errorf("the test recognizes only %d names with the owner", found)
	}
}

func TestOwners(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   []string
	}{
		"Import":   {reason: "An import path has the owner.", text: `"github.com/acme/tailscale-gateway/apis"`, want: []string{"acme"}},
		"File":     {reason: "So has the address of a file.", text: "https://raw.githubusercontent.com/acme/tailscale-gateway/v1/README.md", want: []string{"acme"}},
		"Site":     {reason: "So has the site.", text: "https://acme.github.io/tailscale-gateway/", want: []string{"acme"}},
		"Image":    {reason: "So have images and packages.", text: "ghcr.io/acme/agent:v1 ghcr.io/acme/configuration-tailscale-gateway-claims:v1", want: []string{"acme", "acme"}},
		"Chart":    {reason: "So have charts.", text: "oci://ghcr.io/acme/charts/tailscale-gateway", want: []string{"acme"}},
		"Object":   {reason: "Crossplane's name of a package begins with the owner.", text: "tailscale-gateway-provider-tailscale acme-configuration-tailscale-gateway", want: []string{"tailscale-gateway", "acme"}},
		"Team":     {reason: "A team belongs to the owner.", text: "* @acme/maintainers", want: []string{"acme"}},
		"Others":   {reason: "Other projects have other owners.", text: "ghcr.io/tailscale/tailscale github.com/tailscale/tailscale ghcr.io/acme/hello terraform-provider-tailscale"},
		"NoPrefix": {reason: "The name of a product has no owner.", text: "provider-tailscale, configuration-tailscale-gateway"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, owners(tc.text)); diff != "" {
				t.Errorf("\n%s\nowners(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

// clones are the pages whose commands need a clone, with what for.
var clones = map[string]string{
	"docs/acceptance.md":    "the acceptance run is a program of the repository",
	"docs/prove-it.md":      "it is a short form of the acceptance run, and clones the repository first",
	"docs/lab.md":           "the lab builds everything from source",
	"docs/performance.md":   "its measurements are made from source",
	"docs/scale.md":         "its measurements are made from source",
	"docs/compatibility.md": "it names the acceptance run and a check of the repository",
}

// cloned matches a command with a path of the repository, or one that builds from it.
var cloned = regexp.MustCompile(`(?:^|[\s=])(?:\./)?(?:package|cluster|hack|examples|cmd)/|\bgo (?:run|build|test) |^make `)

// ourChart matches the reference of a chart of ours in a command, and what follows.
var ourChart = regexp.MustCompile(`\boci://` + regexp.QuoteMeta(products.Charts) + `/\S+(.*)`)

// TestWithoutClone checks that the commands of users' pages need nothing but what a release has, because those who
// follow them have no clone, and that they name the release of a chart.
func TestWithoutClone(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"docs/*.md", "docs/guides/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no page is %s: %v", pattern, err)
		}
		pages = append(pages, found...)
	}
	commands := 0
	for _, page := range pages {
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		fenced := ""
		for n, line := range strings.Split(read(t, name), "\n") {
			if lang, ok := strings.CutPrefix(strings.TrimSpace(line), "```"); ok {
				if fenced != "" {
					lang = ""
				} else if lang == "" {
					lang = "text"
				}
				fenced = lang
				continue
			}
			if fenced != "sh" && fenced != "bash" && (fenced != "" || !strings.HasPrefix(line, "    ")) {
				continue
			}
			commands++
			// Without a version, helm takes the newest one: a command that changes a value would upgrade.
			if m := ourChart.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], " --version") {
				t.Errorf("%s:%d: the command %q names a chart without its version", name, n+1, strings.TrimSpace(line))
			}
			if _, ok := clones[filepath.ToSlash(name)]; !ok && cloned.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%s:%d: the command %q needs a clone of the repository; name a file of a release, or list the page with the reason", name, n+1, strings.TrimSpace(line))
			}
		}
	}
	if commands < 100 {
		t.Errorf("found %d lines of commands", commands)
	}
}

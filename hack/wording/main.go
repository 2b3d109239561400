// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Wording checks the English of comments, messages, help texts and documents by the rules
// of CONTRIBUTING.md: words that readers have to decode are errors, and the doc comment of a
// function begins with its name and a verb.
//
//	go run ./hack/wording             # the whole tree
//	go run ./hack/wording internal/   # a part of it
//
// The file pending.txt lists folders and files that do not follow the rules yet. An entry
// that has no finding any more is an error too, so that the list only gets shorter.
package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

//go:embed pending.txt
var pending []byte

func main() {
	parts := os.Args[1:]
	if err := run(os.DirFS("."), parts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks the files below the given paths, or all files if there are none.
func run(root fs.FS, parts []string) error {
	var out []finding
	if err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return errors.Wrapf(err, "cannot read %s", path)
		}
		if d.IsDir() {
			if path != "." && skipped(path) {
				return fs.SkipDir
			}
			return nil
		}
		if !within(path, parts) || generated(path) {
			return nil
		}
		src, err := fs.ReadFile(root, path)
		if err != nil {
			return errors.Wrapf(err, "cannot read %s", path)
		}
		found, err := check(path, src)
		out = append(out, found...)
		return err
	}); err != nil {
		return err
	}
	return report(out, entries(pending), parts)
}

// report returns an error that lists the findings of files that are not pending, and, when
// the whole tree was checked, the pending entries without a finding.
func report(found []finding, pending, parts []string) error {
	var msg bytes.Buffer
	open := map[string]bool{}
	n := 0
	for _, f := range found {
		at := slices.IndexFunc(pending, func(p string) bool { return within(f.path, []string{p}) })
		if at >= 0 {
			open[pending[at]] = true
			if len(parts) == 0 {
				continue
			}
		}
		n++
		fmt.Fprintf(&msg, "%s:%d: %s\n", f.path, f.line, f.message)
	}
	if len(parts) == 0 {
		for _, p := range pending {
			if !open[p] {
				n++
				fmt.Fprintf(&msg, "hack/wording/pending.txt: %s follows the rules; remove the entry\n", p)
			}
		}
	}
	if n == 0 {
		return nil
	}
	return errors.Errorf("%s%d findings; CONTRIBUTING.md has the rules", msg.String(), n)
}

// entries returns the lines of a list without comments and empty lines.
func entries(list []byte) []string {
	var out []string
	for s := bufio.NewScanner(bytes.NewReader(list)); s.Scan(); {
		if l := strings.TrimSpace(s.Text()); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

// within reports whether a file is one of the paths or below one of them. No paths are the
// whole tree.
func within(path string, of []string) bool {
	if len(of) == 0 {
		return true
	}
	return slices.ContainsFunc(of, func(p string) bool {
		p = strings.TrimSuffix(filepath.ToSlash(filepath.Clean(p)), "/")
		return p == "." || path == p || strings.HasPrefix(path, p+"/")
	})
}

// skipped reports whether a folder holds no text that people of this project write.
func skipped(dir string) bool {
	switch base := filepath.Base(dir); base {
	case ".git", "_out", "testdata", "node_modules", "wording":
		return true
	}
	return false
}

// generated reports whether a file is made by a program from texts that are checked where
// they stand.
func generated(path string) bool {
	return strings.HasPrefix(filepath.Base(path), "zz_generated") ||
		within(path, []string{"docs/reference", "package/provider/crds", "package/function/input", "package/configuration", "package/configuration-claims", "cluster/charts/tailscale-gateway-extension/crds"})
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Wording checks the English of comments, messages, help texts and documents by the rules
// of CONTRIBUTING.md: words that readers have to decode are errors, and the doc comment of a
// function begins with its name and a verb.
//
//	go run ./hack/wording             # the whole tree
//	go run ./hack/wording internal/   # a part of it
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

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
		// A symbolic link has the content of another path.
		if !d.Type().IsRegular() || !within(path, parts) || generated(path) {
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
	return report(out)
}

// report returns an error that lists the findings, or nil if there are none.
func report(found []finding) error {
	if len(found) == 0 {
		return nil
	}
	var msg bytes.Buffer
	for _, f := range found {
		fmt.Fprintf(&msg, "%s:%d: %s\n", f.path, f.line, f.message)
	}
	return errors.Errorf("%s%d findings; CONTRIBUTING.md has the rules", msg.String(), len(found))
}

// within reports whether a file is one of the paths or below one of them. No paths are the
// whole tree.
func within(path string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	return slices.ContainsFunc(paths, func(p string) bool {
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
		filepath.Ext(path) == ".yaml" && within(path, []string{"package/function/input"}) ||
		within(path, []string{"docs/reference", "package/provider/crds", "package/configuration/xrds", "package/charts/tailscale-gateway-extension/files/crds"})
}

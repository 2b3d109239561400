// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A link leads from a page to a file.
type link struct{ name, target string }

// An example is a file of manifests, and the kinds of its objects as VERSION/KIND.
type example struct {
	file  string
	kinds []string
}

// object matches the first lines of an object.
var object = regexp.MustCompile(`(?m)^apiVersion: (\S+)\nkind: (\S+)$`)

// readExamples returns the examples of a folder and of those in it, by name, with absolute paths.
func readExamples(dir string) ([]example, error) {
	if dir == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, errors.Wrap(err, "cannot find examples")
	}
	var out []example
	files := os.DirFS(dir)
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		e := example{file: filepath.Join(dir, path)}
		for _, m := range object.FindAllSubmatch(b, -1) {
			e.kinds = append(e.kinds, string(m[1])+"/"+string(m[2]))
		}
		out = append(out, e)
		return nil
	})
	return out, errors.Wrap(err, "cannot read examples")
}

// links returns links to the examples that have an object of a kind, except the one that its page shows.
func (c *cli) links(all []example, k kind, shown string) ([]link, error) {
	var out []link
	dir, err := filepath.Abs(c.Examples)
	if err != nil {
		return nil, errors.Wrap(err, "cannot find examples")
	}
	page, err := filepath.Abs(c.Out)
	if err != nil {
		return nil, errors.Wrap(err, "cannot find pages")
	}
	for _, e := range all {
		if e.file == shown || !slices.Contains(e.kinds, k.group+"/"+k.version+"/"+k.name) {
			continue
		}
		target, err := filepath.Rel(page, e.file)
		if err != nil {
			return nil, errors.Wrap(err, "cannot link example")
		}
		name, err := filepath.Rel(dir, e.file)
		if err != nil {
			return nil, errors.Wrap(err, "cannot name example")
		}
		out = append(out, link{name: filepath.ToSlash(name), target: filepath.ToSlash(target)})
	}
	return out, nil
}

// withoutLicence drops the comment that every file begins with.
func withoutLicence(b []byte) []byte {
	for bytes.HasPrefix(b, []byte("# Copyright")) || bytes.HasPrefix(b, []byte("# SPDX")) {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return bytes.TrimSpace(b)
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// folders is where this machine's loader looks for libraries: Debian's, then
// those of others.
var folders = []string{
	"/lib/" + triple(architecture), "/usr/lib/" + triple(architecture), "/lib64", "/usr/lib64", "/lib", "/usr/lib",
}

// triple is Debian's name for an architecture.
func triple(arch string) string {
	switch arch {
	case "amd64":
		return "x86_64-linux-gnu"
	case "arm64":
		return "aarch64-linux-gnu"
	}
	return arch
}

// libraries returns what a program of this machine needs beside itself, its
// loader and shared libraries, by their paths. They are this machine's own, at
// the same paths in an image: a loader looks where it was built to.
func libraries(program string) (map[string]string, error) {
	found := map[string]string{}
	seen := map[string]bool{}
	for todo := []string{program}; len(todo) > 0; todo = todo[1:] {
		loader, needed, err := wants(todo[0])
		if err != nil {
			return nil, err
		}
		if loader != "" {
			found[loader] = loader
			// Libraries ask for the loader by its name.
			seen[filepath.Base(loader)] = true
		}
		for _, n := range needed {
			if seen[n] {
				continue
			}
			seen[n] = true
			path, err := find(n)
			if err != nil {
				return nil, errors.Wrapf(err, "cannot run %q", filepath.Base(program))
			}
			found[path] = path
			todo = append(todo, path)
		}
	}
	return found, nil
}

// wants reads from an ELF file which loader and which libraries it needs.
func wants(file string) (loader string, needed []string, err error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", nil, errors.Wrapf(err, "cannot read program %q", file)
	}
	defer f.Close() // Only read.
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return "", nil, errors.Wrapf(err, "cannot read the loader of %q", file)
		}
		loader = strings.TrimRight(string(b), "\x00")
	}
	needed, err = f.ImportedLibraries()
	return loader, needed, errors.Wrapf(err, "cannot read the libraries of %q", file)
}

func find(library string) (string, error) {
	for _, d := range folders {
		path := filepath.Join(d, library)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.Errorf("cannot find library %q in %s", library, strings.Join(folders, ", "))
}

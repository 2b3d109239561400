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

// folders are the folders in which this machine's loader looks for libraries: Debian's, then
// those of other distributions.
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

// libraries returns the loader and the shared libraries of a program of this machine, by
// their paths in an image. The paths are the same as on this machine, because a loader
// searches the folders that it was built with.
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
			// Libraries refer to the loader by its name.
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

// wants returns the loader and the libraries that an ELF file needs.
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

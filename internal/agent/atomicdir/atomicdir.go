// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package atomicdir writes a directory the way kubelet writes a mounted Secret: files are
// symlinks through ..data, and one rename swaps ..data. Containerboot watches its directories
// for exactly this (tailscale.com cmd/containerboot/tailscaled.go,
// watchTailscaledConfigChanges). The package does not interpret the files' contents.
package atomicdir

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	dataLink   = "..data"
	newLink    = "..data_new"
	generation = "..gen-"

	// Only the agent's user can read the files: they can hold an auth key.
	dirMode  = 0o700
	fileMode = 0o600
)

// A Dir is a directory whose files are replaced atomically, all together. It has
// one writer.
type Dir struct {
	path   string
	name   string
	others []string
}

// New returns a Dir for the directory at path, which holds a file called name and can hold
// others. Nothing is written before the first Write.
func New(path, name string, others ...string) *Dir {
	return &Dir{path: path, name: name, others: others}
}

// Name returns the name of the file that always exists.
func (d *Dir) Name() string { return d.name }

// Read returns the content of the file called name, or nil if it does not exist yet.
func (d *Dir) Read() ([]byte, error) { return d.ReadFile(d.name) }

// ReadFile returns the content of a file, or nil if it does not exist yet.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(d.path, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, errors.Wrap(err, "cannot read file")
}

// Write replaces the content of the file called name, and reports whether the content changed.
func (d *Dir) Write(data []byte) (bool, error) {
	return d.WriteFiles(map[string][]byte{d.name: data})
}

// WriteFiles replaces the contents of the given files, and reports whether any of them changed.
// Other files stay the same. The previous generation is kept for a reader that has already
// followed the links. All older generations are removed before anything is written, so that a
// volume that was full has room for the next attempt.
func (d *Dir) WriteFiles(files map[string][]byte) (bool, error) {
	existing := make(map[string][]byte)
	for _, name := range append([]string{d.name}, d.others...) {
		b, err := d.ReadFile(name)
		if err != nil {
			return false, err
		}
		if b != nil {
			existing[name] = b
		}
	}
	data := maps.Clone(existing)
	maps.Copy(data, files)
	if maps.EqualFunc(existing, data, bytes.Equal) {
		return false, nil
	}
	if err := os.MkdirAll(d.path, dirMode); err != nil {
		return false, errors.Wrap(err, "cannot make directory")
	}

	previous, err := os.Readlink(filepath.Join(d.path, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, errors.Wrap(err, "cannot read link to current generation")
	}
	if err := d.prune(previous); err != nil {
		return false, err
	}
	gen, err := d.writeGeneration(data)
	if err != nil {
		return false, errors.Join(err, d.prune(previous))
	}
	if err := d.swap(gen); err != nil {
		return false, errors.Join(err, d.prune(previous))
	}
	for name := range data {
		if err := d.link(name); err != nil {
			return false, err
		}
	}
	return true, nil
}

// writeGeneration writes files into a new directory and returns the directory's name.
func (d *Dir) writeGeneration(files map[string][]byte) (string, error) {
	dir, err := os.MkdirTemp(d.path, generation)
	if err != nil {
		return "", errors.Wrap(err, "cannot make new generation")
	}
	for name, data := range files {
		if err := writeFile(filepath.Join(dir, name), data); err != nil {
			return "", err
		}
	}
	return filepath.Base(dir), nil
}

func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return errors.Wrap(err, "cannot make file")
	}
	if _, err := f.Write(data); err != nil {
		return errors.Join(errors.Wrap(err, "cannot write file"), f.Close())
	}
	// The directory survives a crash of the node, so files must be written completely.
	if err := f.Sync(); err != nil {
		return errors.Join(errors.Wrap(err, "cannot sync file"), f.Close())
	}
	return errors.Wrap(f.Close(), "cannot close file")
}

// swap makes gen the current generation.
func (d *Dir) swap(gen string) error {
	tmp := filepath.Join(d.path, newLink)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Wrap(err, "cannot remove stale link")
	}
	if err := os.Symlink(gen, tmp); err != nil {
		return errors.Wrap(err, "cannot link new generation")
	}
	return errors.Wrap(os.Rename(tmp, filepath.Join(d.path, dataLink)), "cannot swap generations")
}

// link creates the symlink that makes a file visible at the top of the directory, if it does
// not exist yet.
func (d *Dir) link(name string) error {
	err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(d.path, name))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return errors.Wrap(err, "cannot link file")
}

// prune removes all generations other than the current one.
func (d *Dir) prune(current string) error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return errors.Wrap(err, "cannot list generations")
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), generation) || e.Name() == current {
			continue
		}
		errs = append(errs, errors.Wrap(os.RemoveAll(filepath.Join(d.path, e.Name())), "cannot remove old generation"))
	}
	return errors.Join(errs...)
}

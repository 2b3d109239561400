// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Builder builds tools into a cache.
type Builder struct {
	// Modules is the folder of the tools' modules, cluster/tools.
	Modules string
	// Cache is the folder with a folder for each tool.
	Cache string
	// GoVersion is part of the cache's key.
	GoVersion string
	// Progress receives lines; lines of one step are overwritten with \r if Terminal is true.
	Progress io.Writer
	Terminal bool
}

// Key returns the first 8 hex digits of the hash of all inputs of a tool's
// binaries: its files by relative path, its flags and Go's version.
func Key(t Tool, files map[string][]byte, goVersion string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%v\n", goVersion, t.LDFlags, t.Tags, t.Outputs)
	if t.Toolchain != "" || len(t.Removed) > 0 {
		fmt.Fprintf(h, "%s\n%v\n", t.Toolchain, t.Removed)
	}
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(h, "%s %d\n", n, len(files[n]))
		h.Write(files[n])
	}
	return hex.EncodeToString(h.Sum(nil))[:8]
}

// Dir returns the folder of t's binaries in the cache, which exists once they are built.
func (b *Builder) Dir(t Tool) (string, error) {
	root := b.module(t)
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		files[rel], err = os.ReadFile(p) //nolint:gosec // A file of this project.
		return err
	})
	if err != nil {
		return "", errors.Wrapf(err, "cannot read module of tool %q", t.Name)
	}
	return filepath.Join(b.Cache, t.Name+"-"+t.Version+"-"+Key(t, files, b.GoVersion)), nil
}

// module returns the folder of t's module.
func (b *Builder) module(t Tool) string { return filepath.Join(b.Modules, cmp.Or(t.Folder, t.Name)) }

// environment returns the environment of Go commands on t's module.
func environment(t Tool, flags string) []string {
	env := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="+flags)
	if t.Toolchain != "" {
		env = append(env, "GOTOOLCHAIN="+t.Toolchain)
	}
	return env
}

// Binaries returns the path of every output and link by name, whether or not it
// is built.
func (b *Builder) Binaries() (map[string]string, error) {
	out := map[string]string{}
	for _, t := range Table() {
		dir, err := b.Dir(t)
		if err != nil {
			return nil, err
		}
		for _, o := range t.Outputs {
			for _, n := range append([]string{o.Name}, o.Links...) {
				out[n] = filepath.Join(dir, n)
			}
		}
	}
	return out, nil
}

// BuildAll builds the tools of every lab that the cache lacks, one after the other,
// because each build uses all cores. Only one process may build into a cache at a
// time.
func (b *Builder) BuildAll(ctx context.Context) error {
	var needed []Tool
	for _, t := range Table() {
		if !t.Optional {
			needed = append(needed, t)
		}
	}
	return b.Ensure(ctx, needed...)
}

// Ensure builds those of the given tools that the cache lacks, as BuildAll does.
func (b *Builder) Ensure(ctx context.Context, needed ...Tool) error {
	if err := b.removeUnfinished(); err != nil {
		return err
	}
	for i, t := range needed {
		step := fmt.Sprintf("[%d/%d] building %s %s", i+1, len(needed), t.Name, t.Version)
		dir, err := b.Dir(t)
		if err != nil {
			return err
		}
		if _, err := os.Stat(dir); err == nil {
			fmt.Fprintf(b.Progress, "%s ... cached\n", step)
			continue
		}
		start := time.Now()
		stop := b.tick(step, start)
		err = b.build(ctx, t, dir)
		stop()
		if err != nil {
			fmt.Fprintf(b.Progress, "%s ... failed after %s\n", step, time.Since(start).Round(time.Second))
			return err
		}
		fmt.Fprintf(b.Progress, "%s ... %s\n", step, time.Since(start).Round(time.Second))
	}
	return nil
}

// unfinished is the prefix of the folders of builds in progress.
const unfinished = ".building-"

// removeUnfinished removes the folders of builds that were killed.
func (b *Builder) removeUnfinished() error {
	leftovers, err := filepath.Glob(filepath.Join(b.Cache, unfinished+"*"))
	if err != nil {
		return errors.Wrap(err, "cannot list cache")
	}
	for _, d := range leftovers {
		if err := os.RemoveAll(d); err != nil {
			return errors.Wrap(err, "cannot remove unfinished build")
		}
	}
	return nil
}

// tick shows the progress of a step: each second on a terminal, else each half
// minute. The returned function stops it and waits for its last write.
func (b *Builder) tick(step string, start time.Time) func() {
	interval := 30 * time.Second
	if b.Terminal {
		interval = time.Second
	}
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		t := time.NewTicker(interval)
		defer t.Stop()
		for {
			select {
			case <-done:
				if b.Terminal {
					fmt.Fprint(b.Progress, "\r\033[K")
				}
				return
			case <-t.C:
				if b.Terminal {
					fmt.Fprintf(b.Progress, "\r\033[K%s ... %s", step, time.Since(start).Round(time.Second))
					continue
				}
				fmt.Fprintf(b.Progress, "%s ... %s so far\n", step, time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(done); <-stopped }
}

// build builds t's binaries in a temporary folder and renames it when all are
// built, so that an interrupted build never looks complete.
func (b *Builder) build(ctx context.Context, t Tool, dir string) error {
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return errors.Wrap(err, "cannot make cache")
	}
	tmp, err := os.MkdirTemp(b.Cache, unfinished+t.Name+"-")
	if err != nil {
		return errors.Wrap(err, "cannot make folder in cache")
	}
	defer os.RemoveAll(tmp) // A successful build has renamed it.
	if err := os.Chmod(tmp, 0o755); err != nil {
		return errors.Wrap(err, "cannot set mode of folder in cache")
	}
	get := b.compile
	if t.Wheel != "" {
		get = b.download
	}
	if err := get(ctx, t, tmp); err != nil {
		return err
	}
	for _, o := range t.Outputs {
		for _, l := range o.Links {
			if err := os.Symlink(o.Name, filepath.Join(tmp, l)); err != nil {
				return errors.Wrapf(err, "cannot link %q", l)
			}
		}
	}
	return errors.Wrapf(os.Rename(tmp, dir), "cannot move tool %q into the cache", t.Name)
}

// compile builds t's binaries from its module.
func (b *Builder) compile(ctx context.Context, t Tool, dir string) error {
	module := b.module(t)
	if len(t.Removed) > 0 {
		tmp, err := os.MkdirTemp(b.Cache, unfinished+t.Name+"-")
		if err != nil {
			return errors.Wrap(err, "cannot make folder in cache")
		}
		defer os.RemoveAll(tmp) // Only the build needs it.
		if module, err = b.change(ctx, t, tmp); err != nil {
			return err
		}
	}
	for _, o := range t.Outputs {
		args := []string{"build"}
		if strings.HasSuffix(o.Name, ".test") {
			args = []string{"test", "-c"}
		}
		args = append(args, "-trimpath", "-ldflags", strings.TrimSpace("-s -w "+t.LDFlags), "-o", filepath.Join(dir, o.Name))
		if t.Tags != "" {
			args = append(args, "-tags", t.Tags)
		}
		cmd := exec.CommandContext(ctx, "go", append(args, o.Package)...)
		cmd.Dir = module
		cmd.Env = environment(t, "-buildvcs=false")
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return errors.Errorf("interrupted while building %q: finished tools stay in the cache", t.Name)
			}
			return errors.Errorf("cannot build %q of tool %q: %v\n%s", o.Name, t.Name, err, tail(output.String()))
		}
	}
	return nil
}

// tail returns the last lines of a build's output, which contain its errors.
func tail(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > 10 {
		lines = lines[len(lines)-10:]
	}
	return strings.Join(lines, "\n")
}

// ModuleDir returns the folder of t's upstream module in the module cache. t must be
// a Go module.
func (b *Builder) ModuleDir(ctx context.Context, t Tool) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", t.Module)
	cmd.Dir = b.module(t)
	cmd.Env = environment(t, "-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Errorf("cannot find module %q: %v", t.Module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		return "", errors.Errorf("cannot find module %q: not downloaded", t.Module)
	}
	return dir, nil
}

// Find returns the tool of that name.
func Find(name string) (Tool, error) {
	for _, t := range Table() {
		if t.Name == name {
			return t, nil
		}
	}
	return Tool{}, errors.Errorf("cannot find tool %q", name)
}

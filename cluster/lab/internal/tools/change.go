// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// change makes a copy of t's module in dir, which uses a copy of the upstream module without the
// lines of t.Without, and returns its folder: an overlay cannot replace files of the module cache.
func (b *Builder) change(ctx context.Context, t Tool, dir string) (string, error) {
	if err := b.goCommand(ctx, t, b.module(t), "mod", "download", t.Module); err != nil {
		return "", err
	}
	upstream, err := b.ModuleDir(ctx, t)
	if err != nil {
		return "", err
	}
	module, changed := filepath.Join(dir, "module"), filepath.Join(dir, "upstream")
	for to, from := range map[string]string{module: b.module(t), changed: upstream} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			return "", errors.Wrapf(err, "cannot copy module of tool %q", t.Name)
		}
	}
	for file, line := range t.Without {
		if err := removeLine(filepath.Join(changed, file), line); err != nil {
			return "", err
		}
	}
	err = b.goCommand(ctx, t, module, "mod", "edit", "-replace="+t.Module+"="+changed)
	return module, err
}

// goCommand runs a Go command on a copy of t's module.
func (b *Builder) goCommand(ctx context.Context, t Tool, module string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = module, environment(t, "-mod=mod")
	out, err := cmd.CombinedOutput()
	return errors.Wrapf(err, "cannot run go %s for tool %q: %s", args[0], t.Name, tail(string(out)))
}

// removeLine removes the lines of a file that contain text. There must be one.
func removeLine(file, text string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return errors.Wrapf(err, "cannot read %q", file)
	}
	lines := strings.Split(string(b), "\n")
	left := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, text) })
	if len(left) == len(lines) {
		return errors.Errorf("cannot find a line with %q in %q", text, file)
	}
	return errors.Wrapf(os.WriteFile(file, []byte(strings.Join(left, "\n")), 0o644), "cannot write %q", file)
}

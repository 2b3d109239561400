// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// change copies t's module to dir, replaces its upstream module by a copy without the lines of
// t.Removed, and returns its folder: an overlay cannot replace files of the module cache.
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
	for file, text := range t.Removed {
		if err := removeLines(filepath.Join(changed, file), text); err != nil {
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

// removeLines removes the lines with text from a file. The text, which may span several lines,
// must occur once.
func removeLines(file, text string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return errors.Wrapf(err, "cannot read %q", file)
	}
	prefix, suffix, found := strings.Cut(string(b), text)
	if !found || strings.Contains(suffix, text) {
		return errors.Errorf("cannot find exactly one %q in %q", text, file)
	}
	prefix = prefix[:strings.LastIndex(prefix, "\n")+1]
	_, suffix, _ = strings.Cut(suffix, "\n")
	return errors.Wrapf(os.WriteFile(file, []byte(prefix+suffix), 0o644), "cannot write %q", file)
}

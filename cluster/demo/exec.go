// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// goRun runs a program of a module of this tree, and prints its output.
func goRun(ctx context.Context, module, program string, args ...string) error {
	args = slices.Concat([]string{"-C", module, "run", program}, args)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return errors.Wrapf(cmd.Run(), "go %s failed", strings.Join(args, " "))
}

// runBuilder runs the builder of packages, which is a separate module.
func runBuilder(ctx context.Context, args ...string) error {
	return goRun(ctx, "package/builder", ".", args...)
}

// output runs a program with an input, and returns what it printed. Its
// complaint, or else what it printed, becomes the error.
func output(ctx context.Context, stdin []byte, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, complaint := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, complaint
	if err := cmd.Run(); err != nil {
		return "", errors.Wrapf(err, "%s: %s", name, cmp.Or(strings.TrimSpace(complaint.String()), strings.TrimSpace(out.String())))
	}
	return out.String(), nil
}

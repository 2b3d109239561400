// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// certs is where Envoy Gateway looks for its certificates when its objects come
// from an API server. It has no setting for that.
const certs = "/certs"

// systemAuthorities is where Envoy Gateway has Envoy look for the system's (envoyproxy/gateway
// internal/utils/cert).
const systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

// withCerts gives the calling thread a root folder with dir as certs, and with files in
// place of others, by their path. All else of it is this machine's, which never sees a
// trace: the mounts are the thread's own, and what it starts.
func withCerts(root, dir string, files map[string]string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return errors.Wrap(err, "cannot make a mount namespace")
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return errors.Wrap(err, "cannot keep mounts private")
	}
	if err := unix.Mount("none", root, "tmpfs", 0, "mode=755"); err != nil {
		return errors.Wrap(err, "cannot make a root folder")
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return errors.Wrap(err, "cannot read the root folder")
	}
	for _, e := range entries {
		if err := same(root, e); err != nil {
			return err
		}
	}
	if err := bind(dir, filepath.Join(root, certs)); err != nil {
		return err
	}
	for to, from := range files {
		if err := unix.Mount(from, filepath.Join(root, to), "", unix.MS_BIND, ""); err != nil {
			return errors.Wrapf(err, "cannot put a file in place of %q", to)
		}
	}
	return errors.Wrap(unix.Chroot(root), "cannot change the root folder")
}

// same makes an entry of the root folder appear in another.
func same(root string, e os.DirEntry) error {
	from, to := filepath.Join("/", e.Name()), filepath.Join(root, e.Name())
	switch {
	case from == certs:
		return nil
	case e.Type()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return errors.Wrapf(err, "cannot read link %q", from)
		}
		return errors.Wrapf(os.Symlink(target, to), "cannot link %q", from)
	case e.IsDir():
		return bind(from, to)
	}
	return nil // Programs need no file of the root folder itself.
}

func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return errors.Wrapf(err, "cannot make folder for %q", from)
	}
	return errors.Wrapf(unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""), "cannot bind %q", from)
}

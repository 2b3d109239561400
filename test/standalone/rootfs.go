// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// certs is the folder in which Envoy Gateway looks for its certificates when its objects come from
// an API server. There is no setting for it.
const certs = "/certs"

// systemAuthorities is the path of the system's authorities in the configuration of Envoys
// (envoyproxy/gateway internal/utils/cert).
const systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

// withCerts gives the calling thread a root folder with dir as certs, and with files that replace
// others, by their path. The rest is the machine's root folder, which does not change: the mounts
// are visible only to the thread and the processes that it starts.
func withCerts(root, dir string, files map[string]string) error {
	if err := unshare(newMounts); err != nil {
		return errors.Wrap(err, "cannot create a mount namespace")
	}
	if err := mount("none", "/", "", recursive|private, ""); err != nil {
		return errors.Wrap(err, "cannot keep mounts private")
	}
	if err := mount("none", root, "tmpfs", 0, "mode=755"); err != nil {
		return errors.Wrap(err, "cannot create a root folder")
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
		if err := mount(from, filepath.Join(root, to), "", bound, ""); err != nil {
			return errors.Wrapf(err, "cannot replace file %q", to)
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
	return nil // Programs need no file in the root folder.
}

func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return errors.Wrapf(err, "cannot create folder for %q", from)
	}
	return errors.Wrapf(mount(from, to, "", bound|recursive, ""), "cannot bind %q", from)
}

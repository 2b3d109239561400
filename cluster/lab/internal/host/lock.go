// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Lock prevents two commands from changing the lab at the same time. If another one
// has the lock, it calls waiting once, and waits. The lock ends with the process, or
// when the returned function is called.
func (p Paths) Lock(ctx context.Context, waiting func()) (func(), error) {
	if err := os.MkdirAll(p.Cache, 0o755); err != nil { // No secrets in there.
		return nil, errors.Wrap(err, "cannot make cache")
	}
	f, err := os.OpenFile(filepath.Join(p.Cache, "lab.lock"), os.O_CREATE|os.O_RDWR, 0o644) // It stays empty.
	if err != nil {
		return nil, errors.Wrap(err, "cannot open lock")
	}
	unlock := func() { _ = f.Close() } // Closing the file releases the lock.
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			unlock()
			return nil, errors.Wrap(err, "cannot lock the lab")
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			unlock()
			return nil, errors.New("interrupted while waiting for another command that changes the lab")
		case <-t.C:
		}
	}
}

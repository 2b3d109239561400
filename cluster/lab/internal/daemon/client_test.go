// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
)

func TestForeign(t *testing.T) {
	c := Client{Paths: host.Paths{State: t.TempDir(), Run: t.TempDir()}}
	if c.Foreign(t.Context()) {
		t.Error("Foreign(): no daemon listens, got one of another lab")
	}
	l, err := net.Listen("unix", c.Paths.Socket())
	if err != nil {
		t.Fatal(err)
	}
	if !c.Foreign(t.Context()) {
		t.Error("Foreign(): a daemon without our PID file listens, got none")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c.Foreign(t.Context()) {
		t.Error("Foreign(): the daemon has ended, got one of another lab")
	}
}

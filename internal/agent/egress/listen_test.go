// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"testing"
)

func TestListenAt(t *testing.T) {
	l, err := ListenAt("127.0.0.1")(t.Context(), 0)
	if err != nil {
		t.Fatalf("ListenAt(...): %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	// Listening on all addresses would let in connections from the tailnet.
	if host, _, err := net.SplitHostPort(l.Addr().String()); err != nil || host != "127.0.0.1" {
		t.Errorf("ListenAt(\"127.0.0.1\"): listens at %s, %v", l.Addr(), err)
	}
}

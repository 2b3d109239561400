// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListenAt checks that a port is open at the given addresses and at no others: listening on
// all addresses would let in connections from the tailnet, and on the first only would refuse the
// clients of the other family.
func TestListenAt(t *testing.T) {
	ls, err := ListenAt("127.0.0.1", "::1")(t.Context(), 0)
	if err != nil {
		t.Fatalf("ListenAt(...): %v", err)
	}
	t.Cleanup(func() { closeAll(ls) })
	var got []string
	for _, l := range ls {
		host, _, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatalf("SplitHostPort(%s): %v", l.Addr(), err)
		}
		got = append(got, host)
	}
	if diff := cmp.Diff([]string{"127.0.0.1", "::1"}, got); diff != "" {
		t.Errorf("ListenAt(...): -want, +got:\n%s", diff)
	}
	if _, err := ListenAt("127.0.0.1", "192.0.2.1")(t.Context(), 0); err == nil {
		t.Error("ListenAt(...): a port that is not open at all addresses must be an error")
	}
}

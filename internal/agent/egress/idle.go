// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"time"
)

// userTimeout is how long data sent to a client may stay unacknowledged. The kernel sends no
// keepalives while data is unacknowledged, and by default retransmits for about 15 minutes.
const userTimeout = 2 * time.Minute

// looks is the number of checks of a connection within its idle timeout.
const looks = 4

// cutIdle calls cut once a connection has carried no data in either direction for the duration
// idle, until ctx is done. It ends connections whose node has vanished while the client sends
// nothing: tailscaled sends no keepalives on connections that it dials (tailscale.com
// wgengine/netstack, DialContextTCP), and Linux answers the client's keepalives. The kernel
// copies the bytes, so carried returns the kernel's byte counts: transfer.
func cutIdle(ctx context.Context, carried func() (transferred, error), idle time.Duration, cut func()) {
	tick := time.NewTicker(max(idle/looks, time.Millisecond))
	defer tick.Stop()
	last, changed := transferred{}, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		current, err := carried()
		if err != nil {
			return // The connection was closed.
		}
		if current != last {
			last, changed = current, time.Now()
			continue
		}
		if time.Since(changed) >= idle {
			cut()
			return
		}
	}
}

// transferred holds the number of bytes that a client has sent and has acknowledged.
type transferred struct{ received, acked uint64 }

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import "net"

// A patientListener is for clients without a keepalive. After packets were dropped for a while, a
// client's retransmissions have long pauses, so it continues only after as long again; and it never
// learns of an answer that this side gave up. The listener therefore keeps connections meanwhile,
// probes them, and resets them as soon as the client acknowledges again: the client then repeats
// its call at once.
type patientListener struct{ net.Listener }

// Accept implements net.Listener.
func (l patientListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err // gRPC checks the type of the error.
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		// A Unix socket loses nothing.
		return c, nil
	}
	return newPatientConn(tcp), nil
}

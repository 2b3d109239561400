// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"cmp"
	"time"
)

// HTTP2 holds the settings of a BackendTrafficPolicy for HTTP/2 to backends. Envoy Gateway
// applies them to Services that speak HTTP/2, and does not know which objects of our kinds
// do. Zero values change nothing.
type HTTP2 struct {
	StreamWindow, ConnectionWindow, Streams uint32

	// OnInvalidMessage is one of the actions below.
	OnInvalidMessage string

	// Interval of pings, and Timeout for their answers. Idle is how long a connection must
	// be without traffic before it is checked by a ping. JitterSet reports that Jitter, in
	// percent of the interval, is set.
	Interval, Timeout, Idle time.Duration
	Jitter                  uint32
	JitterSet               bool
}

// Actions for an invalid message.
const (
	EndStream     = "TerminateStream"
	EndConnection = "TerminateConnection"
)

// MergeOver returns the settings with those that are not set taken from the parent's.
func (h HTTP2) MergeOver(parent HTTP2) HTTP2 {
	out := HTTP2{
		StreamWindow: cmp.Or(h.StreamWindow, parent.StreamWindow), ConnectionWindow: cmp.Or(h.ConnectionWindow, parent.ConnectionWindow),
		Streams: cmp.Or(h.Streams, parent.Streams), OnInvalidMessage: cmp.Or(h.OnInvalidMessage, parent.OnInvalidMessage),
		Interval: cmp.Or(h.Interval, parent.Interval), Timeout: cmp.Or(h.Timeout, parent.Timeout), Idle: cmp.Or(h.Idle, parent.Idle),
		Jitter: h.Jitter, JitterSet: h.JitterSet,
	}
	if !out.JitterSet {
		out.Jitter, out.JitterSet = parent.Jitter, parent.JitterSet
	}
	return out
}

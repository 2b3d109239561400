// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// HTTP2 is what a BackendTrafficPolicy asks of HTTP/2 to backends. Envoy Gateway sets it
// for Services that speak HTTP/2, and does not know which of our kinds do. What is zero is
// not asked for.
type HTTP2 struct {
	StreamWindow, ConnectionWindow, Streams uint32

	// OnInvalidMessage is one of the actions below.
	OnInvalidMessage string

	// Interval of pings, and how long their answer is waited for. Idle is for how long a
	// connection must have been without traffic to be tried with one. JitterSet is
	// true where Jitter counts, in percent of the interval.
	Interval, Timeout, Idle time.Duration
	Jitter                  uint32
	JitterSet               bool
}

// What is ended by a message that is not valid.
const (
	EndStream     = "TerminateStream"
	EndConnection = "TerminateConnection"
)

// Windows may be as large as this, and as small (internal/gatewayapi/http.go in Envoy
// Gateway).
const (
	leastWindow = 64<<10 - 1
	mostWindow  = math.MaxInt32
)

// http2Spec is what a policy says of HTTP/2 (HTTP2Settings of Envoy Gateway's
// api/v1alpha1).
type http2Spec struct {
	InitialStreamWindowSize     *resource.Quantity `json:"initialStreamWindowSize,omitempty"`
	InitialConnectionWindowSize *resource.Quantity `json:"initialConnectionWindowSize,omitempty"`
	MaxConcurrentStreams        uint32             `json:"maxConcurrentStreams,omitempty"`
	OnInvalidMessage            string             `json:"onInvalidMessage,omitempty"`
	ConnectionKeepalive         struct {
		Interval       gwapiv1.Duration `json:"interval,omitempty"`
		Timeout        gwapiv1.Duration `json:"timeout,omitempty"`
		IdleInterval   gwapiv1.Duration `json:"idleInterval,omitempty"`
		IntervalJitter *uint32          `json:"intervalJitter,omitempty"`
	} `json:"connectionKeepalive"`
}

// settings that it asks for. Envoy Gateway refuses policies with values that are not valid.
func (s http2Spec) settings() HTTP2 {
	k := s.ConnectionKeepalive
	out := HTTP2{
		StreamWindow: window(s.InitialStreamWindowSize), ConnectionWindow: window(s.InitialConnectionWindowSize),
		Streams: min(s.MaxConcurrentStreams, math.MaxInt32), OnInvalidMessage: s.OnInvalidMessage,
		Interval: pingTime(k.Interval), Timeout: pingTime(k.Timeout), Idle: pingTime(k.IdleInterval),
	}
	if k.IntervalJitter != nil {
		out.Jitter, out.JitterSet = min(*k.IntervalJitter, 100), true
	}
	return out
}

func window(q *resource.Quantity) uint32 {
	if q == nil {
		return 0
	}
	n, ok := q.AsInt64()
	if !ok || n < leastWindow || n > mostWindow {
		return 0
	}
	return uint32(n)
}

// pingTime of at least a millisecond, which is the least that Envoy takes.
func pingTime(of gwapiv1.Duration) time.Duration {
	d, err := time.ParseDuration(string(of))
	if err != nil || d < time.Millisecond {
		return 0
	}
	return d
}

// over is what is asked for together with what a policy above asks for.
func (h HTTP2) over(above HTTP2) HTTP2 {
	out := HTTP2{
		StreamWindow: cmp.Or(h.StreamWindow, above.StreamWindow), ConnectionWindow: cmp.Or(h.ConnectionWindow, above.ConnectionWindow),
		Streams: cmp.Or(h.Streams, above.Streams), OnInvalidMessage: cmp.Or(h.OnInvalidMessage, above.OnInvalidMessage),
		Interval: cmp.Or(h.Interval, above.Interval), Timeout: cmp.Or(h.Timeout, above.Timeout), Idle: cmp.Or(h.Idle, above.Idle),
		Jitter: h.Jitter, JitterSet: h.JitterSet,
	}
	if !out.JitterSet {
		out.Jitter, out.JitterSet = above.Jitter, above.JitterSet
	}
	return out
}

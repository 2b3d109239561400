// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Limits of HTTP/2 windows (internal/gatewayapi/http.go in Envoy Gateway).
const (
	leastWindow = 64<<10 - 1
	mostWindow  = math.MaxInt32
)

// http2Spec is the part of a BackendTrafficPolicy about HTTP/2 (HTTP2Settings of Envoy
// Gateway's api/v1alpha1).
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

// settings returns the HTTP/2 settings of the policy. Envoy Gateway refuses policies with
// invalid values.
func (s http2Spec) settings() ir.HTTP2 {
	k := s.ConnectionKeepalive
	out := ir.HTTP2{
		StreamWindow: window(s.InitialStreamWindowSize), ConnectionWindow: window(s.InitialConnectionWindowSize),
		Streams: min(s.MaxConcurrentStreams, math.MaxInt32), OnInvalidMessage: s.OnInvalidMessage,
		Interval: pingTime(k.Interval), Timeout: pingTime(k.Timeout), Idle: pingTime(k.IdleInterval),
	}
	if k.IntervalJitter != nil {
		out.Jitter, out.JitterSet = min(*k.IntervalJitter, 100), true
	}
	return out
}

// window returns the size of a window, or 0 if it is unset or out of range.
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

// pingTime parses a duration of at least a millisecond, which is Envoy's minimum. Any other
// value is 0.
func pingTime(value gwapiv1.Duration) time.Duration {
	d, err := time.ParseDuration(string(value))
	if err != nil || d < time.Millisecond {
		return 0
	}
	return d
}

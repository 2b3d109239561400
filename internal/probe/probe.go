// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package probe probes the health of backends. It knows hosts and ports, but not services: the
// agent and the extension decide how to act on a backend's health.
package probe

import (
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// Pauses before the next probe of a backend that is not known to be healthy. The target's
// interval is the upper limit.
const (
	// pauseUnsettled is short, so that a backend that has just failed is soon withdrawn: the
	// threshold counts these short pauses, not intervals.
	pauseUnsettled = 500 * time.Millisecond

	// pauseUnhealthy detects soon that a backend is healthy again, without sending it too many
	// probes.
	pauseUnhealthy = 2 * time.Second
)

// A Target is a backend and how to probe it. It is comparable: equal targets
// are probed once.
type Target struct {
	// Host is a DNS name or an address.
	Host string

	// Port is a TCP port.
	Port uint16

	// Path is the path of an HTTP GET. Empty means that a TCP connection is enough.
	Path string

	// TLS are the settings of an HTTPS GET. The zero value is for an HTTP GET.
	TLS backendtls.Settings

	// ResolveOnly looks up the host, and sends nothing to it.
	ResolveOnly bool

	// Interval is the time between two probes of a healthy backend.
	Interval time.Duration

	// Timeout bounds a probe.
	Timeout time.Duration

	// HealthyThreshold and UnhealthyThreshold are the numbers of equal results in a row that decide
	// the backend's health. Values below one count as one.
	HealthyThreshold   int
	UnhealthyThreshold int
}

// Address returns host:port.
func (t Target) Address() string {
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// Health is the health of a backend.
type Health int

// A backend's health is unknown until it has reached a threshold once.
const (
	Unknown Health = iota
	Healthy
	Unhealthy
)

// String returns the lower-case name of the health.
func (h Health) String() string {
	switch h {
	case Healthy:
		return "healthy"
	case Unhealthy:
		return "unhealthy"
	case Unknown:
	}
	return "unknown"
}

// A Status is the known health of a backend.
type Status struct {
	Health Health

	// Reason says why the backend is unhealthy, in a few words that do not change from probe to
	// probe. Empty unless unhealthy.
	Reason string

	// Address is the address of the backend's host to which the last successful probe connected,
	// if the host has no other one of that family. Connections to it need no name, which could lead
	// somewhere else a moment later. It is the zero value if the host has several addresses, or if
	// no probe has succeeded.
	Address netip.Addr
}

// A state holds a backend's status and the results that may change it.
type state struct {
	status Status

	// successes and failures count results in a row; one of them is zero.
	successes int
	failures  int
}

// next returns the state after a probe of an address, whose failure is described by reason,
// and the pause before the next probe.
func (r state) next(t Target, addr netip.Addr, reason string) (state, time.Duration) {
	if reason == "" {
		r.successes, r.failures = r.successes+1, 0
		r.status.Address = addr
	} else {
		r.successes, r.failures = 0, r.failures+1
	}

	switch {
	case r.successes >= max(t.HealthyThreshold, 1):
		r.status.Health, r.status.Reason = Healthy, ""
	case r.failures >= max(t.UnhealthyThreshold, 1):
		r.status.Health, r.status.Reason = Unhealthy, reason
	}

	switch {
	case r.status.Health == Healthy && r.failures == 0:
		return r, t.Interval
	case r.status.Health == Unhealthy && r.successes == 0:
		return r, min(pauseUnhealthy, t.Interval)
	default:
		return r, min(pauseUnsettled, t.Interval)
	}
}

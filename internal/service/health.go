// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"time"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// Probes of a service without health check. They are simple: one connection that is accepted is
// enough, and two that are not mean that the backend is gone.
const (
	probeInterval           = 5 * time.Second
	probeTimeout            = 2 * time.Second
	probeHealthyThreshold   = 1
	probeUnhealthyThreshold = 2
)

// Defaults of the schema for a health check, for objects that were not validated by it.
const (
	checkInterval           = 10 * time.Second
	checkTimeout            = 3 * time.Second
	checkHealthyThreshold   = 2
	checkUnhealthyThreshold = 3
	checkPath               = "/health"
)

// A HealthCheck holds the settings of a health check with all defaults.
type HealthCheck struct {
	Interval, Timeout                    time.Duration
	HealthyThreshold, UnhealthyThreshold int32

	// Path of an HTTP GET. Empty means that an accepted connection is enough.
	Path string
}

// HealthCheckOf returns the settings of a health check, or the default probes for nil. It does not
// decide whether the check is turned off.
func HealthCheckOf(h *gatewayv1alpha1.HealthCheck) HealthCheck {
	if h == nil {
		return HealthCheck{
			Interval: probeInterval, Timeout: probeTimeout,
			HealthyThreshold: probeHealthyThreshold, UnhealthyThreshold: probeUnhealthyThreshold,
		}
	}
	out := HealthCheck{
		Interval:           positive(h.Interval.Duration, checkInterval),
		Timeout:            positive(h.Timeout.Duration, checkTimeout),
		HealthyThreshold:   positive(h.HealthyThreshold, checkHealthyThreshold),
		UnhealthyThreshold: positive(h.UnhealthyThreshold, checkUnhealthyThreshold),
	}
	if h.Enabled != nil && *h.Enabled {
		out.Path = cmp.Or(h.Path, checkPath)
	}
	return out
}

func positive[T ~int32 | ~int64](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

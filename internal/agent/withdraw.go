// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// withdrawals are the services that the provider has withdrawn from this machine, and until when.
// The provider renews them, so that none outlasts it for long.
type withdrawals map[string]time.Time

// withdrawalsIn returns the withdrawals in the annotations of a config Secret. One that cannot be
// parsed is left out: the machine then serves.
func withdrawalsIn(annotations map[string]string) withdrawals {
	out := withdrawals{}
	for key, text := range annotations {
		service, ok := meta.WithdrawnService(key)
		if !ok {
			continue
		}
		if deadline, err := time.Parse(time.RFC3339, text); err == nil {
			out[service] = deadline
		}
	}
	return out
}

// at returns the services that are withdrawn at a time.
func (w withdrawals) at(instant time.Time) map[string]bool {
	out := make(map[string]bool, len(w))
	for service, deadline := range w {
		out[service] = instant.Before(deadline)
	}
	return out
}

// next returns when the next withdrawal ends, or zero.
func (w withdrawals) next(at time.Time) time.Time {
	return earliest(at, slices.Collect(maps.Values(w))...)
}

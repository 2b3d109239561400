// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// maxSick targets of a pod are listed in the status.
const maxSick = 64

// readHealth of what Gateways reach. Routes cannot name what a step of a pipeline makes.
func (e *endpoints) readHealth(r *compose.Run) error {
	if r.HasInput() {
		return nil
	}
	var err error
	e.health, err = r.Health("TailscaleEndpoints", e.owner)
	return err
}

// sickTargets that Gateways find behind a pod, sorted.
func (e *endpoints) sickTargets(podIP string) []string {
	if e.health == nil || podIP == "" {
		return nil
	}
	var out []string
	for _, p := range e.health.Ports {
		for _, s := range p.Sick {
			if s.Address == podIP {
				out = append(out, s.Name)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxSick)]
}

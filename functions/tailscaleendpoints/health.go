// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import "slices"

// maxUnhealthy is the maximum number of a pod's unhealthy targets in the status.
const maxUnhealthy = 64

// unhealthyTargets returns the targets behind a pod that Gateways report as unhealthy, sorted.
func (e *endpoints) unhealthyTargets(podIP string) []string {
	if e.health == nil || podIP == "" {
		return nil
	}
	var out []string
	for _, p := range e.health.Ports {
		for _, s := range p.UnhealthyEndpoints {
			if s.Address == podIP {
				out = append(out, s.Name)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxUnhealthy)]
}

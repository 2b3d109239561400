// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"slices"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// maxUnhealthy is the maximum number of a pod's unhealthy targets in the status.
const maxUnhealthy = 64

// unhealthyTargets returns the targets behind a pod that Gateways report as unhealthy, sorted.
func unhealthyTargets(report *tailnetv1alpha1.HealthReportSpec, podIP string) []string {
	if report == nil || podIP == "" {
		return nil
	}
	var out []string
	for _, p := range report.Ports {
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

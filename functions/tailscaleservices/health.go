// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// maxUnhealthy is the maximum number of unhealthy endpoints in the status.
const maxUnhealthy = 16

// tiers are the health tiers from the best to the worst.
var tiers = []tailnetv1alpha1.HealthTier{
	tailnetv1alpha1.HealthTierLocal, tailnetv1alpha1.HealthTierRemote, tailnetv1alpha1.HealthTierLastResort,
}

// unhealthyPaths returns the number of unhealthy paths from endpoints to other clusters.
func unhealthyPaths(s *service, p tailnetv1alpha1.ProxySet) int32 {
	if s.health == nil {
		return 0
	}
	ours := map[string]bool{}
	for _, a := range s.attachments {
		if a.Spec.Direction == tailnetv1alpha1.DirectionEgress && a.Spec.Endpoints == p.Spec.Endpoints {
			ours[a.GetName()] = true
		}
	}
	n := int32(0)
	for _, port := range s.health.Ports {
		for _, e := range port.UnhealthyEndpoints {
			if ours[e.Name] {
				n++
			}
		}
	}
	return n
}

// loadBalancing returns the sum of the reports on the service's ports.
func (f facts) loadBalancing() *gatewayv1alpha1.LoadBalancingStatus {
	if f.health == nil || len(f.health.Ports) == 0 {
		return nil
	}
	out := &gatewayv1alpha1.LoadBalancingStatus{}
	worst := 0
	for _, p := range f.health.Ports {
		worst = max(worst, slices.Index(tiers, p.Tier))
		out.Endpoints += p.Endpoints
		out.HealthyEndpoints += p.Healthy
		for _, e := range p.UnhealthyEndpoints {
			out.UnhealthyEndpoints = append(out.UnhealthyEndpoints, gatewayv1alpha1.UnhealthyEndpoint{
				Name:    e.Name,
				Address: net.JoinHostPort(e.Address, strconv.Itoa(int(e.EndpointPort))),
				Reason:  e.Reason,
			})
		}
	}
	out.ActiveTier = string(tiers[worst])
	slices.SortFunc(out.UnhealthyEndpoints, func(a, b gatewayv1alpha1.UnhealthyEndpoint) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Address, b.Address), strings.Compare(a.Reason, b.Reason))
	})
	out.UnhealthyEndpoints = slices.Compact(out.UnhealthyEndpoints)
	out.UnhealthyEndpoints = out.UnhealthyEndpoints[:min(len(out.UnhealthyEndpoints), maxUnhealthy)]
	if o := f.health.Failover; o != nil {
		out.FailoverStatus = &gatewayv1alpha1.FailoverStatus{LastFailover: o.Failover.DeepCopy(), LastFailback: o.Failback, FailoverReason: o.Reason}
	}
	return out
}

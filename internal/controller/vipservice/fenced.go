// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"slices"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

// fencedHosts returns the node IDs of the hosts that this cluster or another one has fenced. Nobody approves
// them, and what they report does not count, until the fence ends.
func fencedHosts(mg *v1alpha1.VIPService, members []registry.Member, at time.Time) map[string]bool {
	out := registry.Fenced(members, at)
	if f := mg.Status.AtProvider.Fence; f != nil && at.Before(f.Deadline.Time) {
		out[f.NodeID] = true
	}
	return out
}

// unfenced returns the node IDs without those of fenced hosts.
func (e *external) unfenced(ids []string) []string {
	return slices.DeleteFunc(ids, func(id string) bool { return e.fenced[id] })
}

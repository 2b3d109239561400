// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// peerHealth holds the health records of other clusters' machines, by node ID. Without sharing there are
// none.
type peerHealth map[string]registry.Health

// peerHealthOf returns the health of the machines of the clusters that share a service, except for this one, whose
// agents know more. The record of a cluster without a sign of life says nothing.
func peerHealthOf(members []registry.Member, self string) peerHealth {
	out := peerHealth{}
	for _, m := range members {
		if m.Cluster == self || !m.Alive || m.Health == nil {
			continue
		}
		for _, id := range m.Nodes {
			out[id] = *m.Health
		}
	}
	return out
}

// configured reports whether a host serves everything that the service defines, given what the API
// alone says. Its words for a host's state are not documented, and it also lists hosts that have
// withdrawn. So a cluster's record decides where it is clear: none of its machines serves, or all of
// them do.
func (p peerHealth) configured(h tailscale.Host, byState bool) bool {
	switch health, ok := p[h.NodeID]; {
	case !ok:
		return byState
	case health.Ready == 0:
		return false
	case health.Ready >= health.Total:
		return true
	}
	return byState
}

//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"testing"
)

const (
	// zoneA and zoneB are the backends of zoned in tuning.yaml, and checksA and checksB
	// where its policy has them checked.
	zoneA, zoneB     = "192.0.2.41:8000", "192.0.2.42:8000"
	checksA, checksB = "192.0.2.41:8011", "192.0.2.42:8011"

	// inZoneA is Envoy's bootstrap in a zone. Envoy prefers its own only if it knows
	// where its fellows are. Envoy Gateway tells it in a cluster.
	inZoneA = `
node: {locality: {zone: a}}
cluster_manager: {local_cluster_name: fellows}
static_resources:
  clusters:
  - name: fellows
    type: STATIC
    connect_timeout: 1s
    load_assignment:
      cluster_name: fellows
      endpoints:
      - locality: {zone: a}
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 192.0.2.51, port_value: 1}}}}]
      - locality: {zone: b}
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 192.0.2.52, port_value: 1}}}}]
`
)

// tunings are what policies ask of endpoint lists. Envoy Gateway knows them alone, and
// the lists are ours. What zones weigh is among shares.
func tunings(t *testing.T, w *world) {
	w.answers(t, "near.example.com", zoneA)
	w.spread(t, "near", zoneA)

	// Both serve, and one no longer answers checks where the policy says.
	w.answers(t, "port.example.com", zoneA)
	w.answers(t, "port.example.com", zoneB)
	w.http[checksA].Close()
	w.until(t, func(ctx context.Context) error {
		return w.counted(ctx, "cluster.tailscale/services/default/zoned/80/http/httproute/default/port.health_check.failure")
	})
	w.spread(t, "port", zoneB)
}

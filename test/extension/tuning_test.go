//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"testing"
)

const (
	// zoneA and zoneB are the backends of zoned in tuning.yaml, and checksA and checksB the
	// addresses of their health checks.
	zoneA, zoneB     = "192.0.2.41:8000", "192.0.2.42:8000"
	checksA, checksB = "192.0.2.41:8011", "192.0.2.42:8011"

	// inZoneA is Envoy's bootstrap in a zone. Envoy prefers its zone only with the locations of the
	// other Envoys, which Envoy Gateway sends in a cluster.
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

// tunings checks policies that affect endpoint lists. Only Envoy Gateway reads the policies, and
// the extension provides the lists. The weight of zones is checked in shares.
func tunings(t *testing.T, w *environment) {
	w.answers(t, "near.example.com", zoneA)
	w.spread(t, "near", zoneA)

	// Both backends serve, and one fails the checks at the policy's address.
	w.answers(t, "port.example.com", zoneA)
	w.answers(t, "port.example.com", zoneB)
	w.http[checksA].Close()
	w.until(t, func(ctx context.Context) error {
		return w.counted(ctx, "cluster.tailscale/services/default/zoned/80/http/httproute/default/port.health_check.failure")
	})
	w.spread(t, "port", zoneB)
}

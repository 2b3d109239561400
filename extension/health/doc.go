// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package health probes the endpoints of targets as Envoy does, and stores in the index which
// endpoints are used last. Package index decides what Envoy does with the order of endpoints;
// package report writes reports to the Kubernetes API.
//
// Envoy's own health checks react within moments, and without this process. A score detects
// intermittent failures, which Envoy's checks do not. Each replica probes from its own node. Two
// replicas may disagree while an endpoint's health is uncertain; the Envoys of each replica then
// have different orders of the same endpoints, and every list has all endpoints. Endpoint lists of
// equal health are equal in all replicas.
package health

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package health finds out how the endpoints of targets fare, by asking them as Envoy
// does, and tells the index which of them come last. What Envoy then does with an order
// of endpoints is for package index to say; what is written to the Kubernetes API lives
// in package report.
//
// Envoy's own health checks decide within moments, and without this process. A score
// sees what they do not: who answers now and then. Each replica probes by itself, from
// where it runs. Two of them may disagree for as long as an endpoint is neither well nor
// sick; the Envoys that each of them serves then have different orders of the same
// endpoints, and no endpoint is missing from any. Endpoint lists of equal health are
// equal in all replicas.
package health

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateways does the extension's part of TailscaleGateways. It tells by one
// GatewayReport each which routes a Gateway has accepted, from which a function makes
// Tailscale Services, and it writes the HTTPRoutes that are generated.
//
// What to write follows from what is known by plan, which is pure. A Controller reads
// from the cache that the extension has anyway, by indexes: it looks at one
// TailscaleGateway and at what its Gateway has alone. One replica writes, unlike in
// package reconcile: who was refused by the API server is who knows why. Each adds the hooks
// that it answered itself.
package gateways

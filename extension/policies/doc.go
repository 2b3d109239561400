// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package policies tells in the status of TailscaleRoutePolicies what becomes of them:
// on which Gateways they have an effect, which rules act, and which collide. It has
// Discoveries look for the devices that they name. What to say follows from a snapshot
// alone. One replica writes. What becomes of policies in Envoy
// lives in packages hooks and xds.
package policies

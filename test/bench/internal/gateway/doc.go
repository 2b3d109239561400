// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway measures the extension with a real Envoy Gateway, a real Envoy and
// a real API server, and how they fare without it: on plain Services, or with an
// extension that gives everything back as it came. What is measured is seen from
// outside of all processes. The goals are not here.
package gateway

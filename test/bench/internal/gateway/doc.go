// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway measures the extension with a real Envoy Gateway, a real Envoy and a real API
// server, and compares it with plain Services and with an extension that returns its input
// unchanged. All measurements are made from outside of the processes. The goals are in the caller.
package gateway

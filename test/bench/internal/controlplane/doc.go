// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs Crossplane, the function and the provider as processes beside a real API server
// and a simulated tailnet, without a cluster, and measures what many composites cost each of them. It
// stands in for what only a cluster has: pods of proxies, which join the tailnet and report, and the
// Services that Envoy Gateway makes. The goals are in the caller.
package controlplane

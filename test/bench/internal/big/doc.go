// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package big runs the provider in a simulated tailnet with many devices and services, most of which
// belong to others, and measures what its polls cost and when it sees that a device is gone. It compares
// that with a node of the same tailnet, whose tailscaled receives changes from the control server. The
// goals are in the caller.
package big

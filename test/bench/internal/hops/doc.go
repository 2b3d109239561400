// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package hops measures the cost of each hop of an egress connection with Userspace networking: its
// delay, and the processor time of its process. Two real tailscaled join a simulated tailnet on the
// loopback, and the agent's code for connections runs beside one of them. No cluster is needed.
//
//	client -> agent -> tailscaled of the proxy -> tailscaled of the peer -> target
//
// Client and target are in this process. The caller selects the figures.
package hops

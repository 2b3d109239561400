// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package hops measures what each hop of an egress connection costs with Userspace
// networking: the time that it adds, and the processor time of who does it. Two
// real tailscaled join a simulated tailnet on the loopback, the agent's way to
// carry connections runs beside one of them, and no cluster is needed.
//
//	client -> agent -> tailscaled of the proxy -> tailscaled of the peer -> target
//
// Client and target are in this process. Which figures come of it is the caller's.
package hops

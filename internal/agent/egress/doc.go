// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package egress carries connections from the cluster into the tailnet: it listens on ports of
// the pod and dials through tailscaled. Package plan decides where each port leads, and
// internal/egress assigns the ports. A port whose target does not answer is closed until it does. With Kernel networking, the kernel forwards the traffic
// instead.
package egress

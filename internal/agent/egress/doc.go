// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package egress carries connections of the cluster into the tailnet: it listens on
// ports of the pod and dials through tailscaled. Which port leads where is decided
// in package plan; who gets which port, in internal/egress. With Kernel networking
// the kernel does this work.
package egress

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package machine holds the controller of Machines: tailnet nodes that pods of
// ours run. It mints the key that a node logs in with, keeps the node's state
// and config Secrets, gives out a new key when the node asks, and removes key,
// device and Secrets at the end. What a node serves is its agent's business; see
// internal/agent.
package machine

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package machine holds the controller of Machines: tailnet nodes that pods of ours run. It mints
// the key with which a node logs in, keeps the node's state and config Secrets, issues a new key
// when the node requests one, and finally removes key, device and Secrets. The node's agent manages
// what the node serves; see internal/agent.
package machine

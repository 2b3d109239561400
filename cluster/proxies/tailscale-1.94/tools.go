// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins a version of the programs of Tailscale's container image with which tests run proxies.
package tools

import (
	_ "tailscale.com/cmd/containerboot"
	_ "tailscale.com/cmd/tailscaled"
)

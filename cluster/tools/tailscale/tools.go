// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: the programs of Tailscale's container image.
package tools

import (
	_ "tailscale.com/cmd/containerboot"
	_ "tailscale.com/cmd/tailscaled"
)

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: Tailscale's own operator, which benchmarks compare with.
package tools

import (
	_ "tailscale.com/cmd/k8s-operator"
)

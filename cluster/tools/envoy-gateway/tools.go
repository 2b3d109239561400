// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: Envoy Gateway.
package tools

import (
	_ "github.com/envoyproxy/gateway/cmd/envoy-gateway"
)

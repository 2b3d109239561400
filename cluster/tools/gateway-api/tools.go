// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: Gateway API's own
// conformance tests, and the backends that they talk to.
package tools

import (
	_ "sigs.k8s.io/gateway-api/conformance"
	_ "sigs.k8s.io/gateway-api/conformance/echo-basic"
)

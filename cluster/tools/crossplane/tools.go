// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: Crossplane's core.
package tools

import (
	_ "github.com/crossplane/crossplane/v2/cmd/crossplane"
)

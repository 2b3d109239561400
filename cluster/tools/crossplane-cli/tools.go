// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: Crossplane's command line.
package tools

import (
	_ "github.com/crossplane/cli/v2/cmd/crossplane"
)

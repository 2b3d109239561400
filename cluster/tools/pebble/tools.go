// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: Pebble, an ACME
// server for tests.
package tools

import (
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble"
)

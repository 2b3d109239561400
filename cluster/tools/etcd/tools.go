// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: the etcd server.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
)

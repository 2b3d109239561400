// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools pins what cluster/lab builds from this module: Helm's command line.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
)

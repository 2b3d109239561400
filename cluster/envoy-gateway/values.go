// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package envoygateway carries what Envoy Gateway is told about our extension: values
// for its own chart. What is installed of ours is in cluster/charts.
package envoygateway

import _ "embed"

// Values for Envoy Gateway's chart, of which config.envoyGateway becomes the file that
// it is configured by.
//
//go:embed values.yaml
var Values []byte

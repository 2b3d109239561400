// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package envoygateway holds the values of Envoy Gateway's chart that configure the extension.
// The extension's chart is in package/charts.
package envoygateway

import _ "embed"

// Values for Envoy Gateway's chart, of which config.envoyGateway becomes the file that
// it is configured by.
//
//go:embed values.yaml
var Values []byte

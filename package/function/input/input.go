// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package input carries the definitions of the inputs that steps of a pipeline may have, as
// the function's package has them.
package input

import _ "embed"

// Definitions of the inputs of each kind, as CustomResourceDefinitions in YAML.
var (
	//go:embed fn.gateway.tailscale.com_tailscaleendpointsinputs.yaml
	TailscaleEndpoints []byte

	//go:embed fn.gateway.tailscale.com_tailscalegatewayinputs.yaml
	TailscaleGateway []byte

	//go:embed fn.gateway.tailscale.com_tailscaleproxygroupinputs.yaml
	TailscaleProxyGroup []byte

	//go:embed fn.gateway.tailscale.com_tailscaleservicesinputs.yaml
	TailscaleServices []byte

	//go:embed fn.gateway.tailscale.com_tailscaletailnetinputs.yaml
	TailscaleTailnet []byte
)

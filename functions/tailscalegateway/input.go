// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

//go:embed package/input/fn.gateway.tailscale.com_tailscalegatewayinputs.yaml
var inputDefinition []byte

// inputs of this function, in pipelines that are not our own.
var inputs = compose.NewInputSchema(inputDefinition) //nolint:gochecknoglobals // A constant.

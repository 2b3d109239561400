// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/package/function/input"
)

// inputs of this function, in pipelines that are not our own.
var inputs = compose.NewInputSchema(input.TailscaleEndpoints) //nolint:gochecknoglobals // A constant.

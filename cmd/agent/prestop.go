// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent"
)

// PreStopCmd has the agent that runs in the pod withdraw its services.
type PreStopCmd struct {
	HooksSocket string `help:"Socket of the agent's hooks." default:"${hooks_socket}" env:"HOOKS_SOCKET"`
}

// Run asks the agent, and returns before clients have moved: the tailscale container's
// own hook waits for that.
func (c *PreStopCmd) Run() error { return agent.PreStop(context.Background(), c.HooksSocket) }

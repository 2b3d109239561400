// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/logs"
)

// NetworkCmd readies the pod for Kernel networking and ends.
type NetworkCmd struct {
	Guard bool `help:"Drop packets of the cluster that would not leave by tailscaled's interface: for pods that carry traffic into the tailnet. Needs the capability NET_ADMIN."`
}

// Run has the kernel forward packets, and guards them.
func (c *NetworkCmd) Run() error {
	log := logs.New(logs.Options{})
	// The guard comes first: nothing may be forwarded without it.
	if c.Guard {
		if err := network.Guard(); err != nil {
			return err
		}
	}
	err := network.EnableForwarding(network.ProcSys)
	if errors.Is(err, network.ErrIPv6) {
		log.Info("Only packets of IPv4 are forwarded", "error", err)
		return nil
	}
	return err
}

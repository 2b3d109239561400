// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"os"
	"strconv"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/logs"
)

// CheckCmd finds out whether Kernel networking works on the pod's node, and ends.
type CheckCmd struct {
	Report   string `help:"File for what was found out." default:"${network_report}"`
	Services bool   `help:"Also find out whether packets that the pod forwards arrive at Services, with the API server's: for pods that carry traffic from the tailnet. Needs the capability NET_RAW."`
}

// Run writes the report. It never fails because of what it found: the agent reports that, and
// tailscaled may run nevertheless.
func (c *CheckCmd) Run() error {
	log := logs.New(logs.Options{})
	service := netip.AddrPort{}
	if c.Services {
		service = apiServer()
	}
	r := network.Check(context.Background(), "/", service)
	log.Info("Checked Kernel networking", "tun", r.Tun, "dropped", r.Dropped)
	if err := r.Write(c.Report); err != nil {
		log.Info("Cannot report about Kernel networking", "error", err)
	}
	return nil
}

// apiServer returns the address of the API server's Service, which kubelet sets in each container.
// It is invalid on platforms that set a name instead.
func apiServer() netip.AddrPort {
	a, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	if err != nil {
		return netip.AddrPort{}
	}
	port, err := strconv.ParseUint(os.Getenv("KUBERNETES_SERVICE_PORT"), 10, 16)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a, uint16(port))
}

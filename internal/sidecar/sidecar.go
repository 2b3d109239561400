// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package sidecar has what a proxy pod and the agent in it agree on: ports, paths and files. The
// builders of pods (internal/proxy) and the agent (internal/agent) import it, and neither imports
// the other.
package sidecar

// Ports of a proxy pod.
const (
	// PortAgent serves the agent's probes and metrics.
	PortAgent = 9093

	// PortDNS is the port on which the agent resolves names for the tailnet. It listens on the
	// loopback address, where tailscaled forwards queries to the machine's address, or with
	// Kernel networking on that address.
	PortDNS = 53

	// PortContainerboot serves containerboot's health and tailscaled's metrics (containerboot's
	// default).
	PortContainerboot = 9002
)

// Paths of the agent's HTTP servers. PathPreStop is on FileHooks, which only the pod's
// processes can reach, so that no other client can withdraw services. The others are on
// PortAgent and change nothing.
const (
	PathStartup   = "/startupz"
	PathLiveness  = "/healthz"
	PathReadiness = "/readyz"
	PathMetrics   = "/metrics"
	PathDrained   = "/drainedz"
	PathTailscale = "/tailscalez"
	PathPreStop   = "/prestop"
)

// Directories and files that the agent shares with other containers of the pod.
const (
	// DirTailscaledConfig holds a directory per pod name, which the agent
	// writes and containerboot reads (TS_EXPERIMENTAL_VERSIONED_CONFIG_DIR).
	DirTailscaledConfig = "/etc/tsconfig"

	// FileHooks is the socket of the agent's hooks.
	FileHooks = DirTailscaledConfig + "/agent.sock"

	// DirRun holds tailscaled's socket, in the default location of the tailscale command.
	DirRun = "/var/run/tailscale"

	// FileNetworkReport has what was found out about Kernel networking on the pod's node.
	FileNetworkReport = DirRun + "/network.json"
)

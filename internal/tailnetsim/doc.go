// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailnetsim is an in-memory Tailscale: one store of devices, keys,
// services and policy with two interfaces. One is the HTTP API v2 (OAuth, devices,
// keys, services, policy file, DNS, settings), the other the coordination
// server that real tailscaled and tsnet nodes log in to, with DERP and STUN.
// A key that the API creates logs a node in, and the node appears in the API.
//
// It follows the published OpenAPI document, the official Go client, the protocol of
// tailscale.com v1.102, and where these are silent or wrong, what others measured on
// real tailnets. A comment names the source of such a behaviour, and testdata/replies holds
// requests and replies with their sources. Behaviour without a source is called an
// assumption. Behaviours that depend on a tailnet, on its plan or on
// timing are Switches.
//
// Nodes get a whole map once, and then what changed: PeersChanged, PeersRemoved and patches. All
// streams share one generation of the tailnet, which a change replaces in parts, so a change costs
// each node much less than 2 ms at 5000 devices (BenchmarkChange). Nodes see the peers, services,
// names and routes that the policy lets them reach or be reached by. Services and subnets have
// their hosts by the tailnet's route selection, per client where the selection is regional. Tailnet
// lock has a real chain, by which nodes verify their peers.
//
// It has one tailnet and no interactive logins. It is for tests and the lab; binaries of the
// product must not import it.
package tailnetsim

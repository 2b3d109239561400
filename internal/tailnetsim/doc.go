// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailnetsim is an in-memory Tailscale: one store of devices, keys,
// services and policy behind two faces. One is the HTTP API v2 (OAuth, devices,
// keys, services, policy file, DNS, settings), the other the coordination
// server that real tailscaled and tsnet nodes log in to, with DERP and STUN.
// A key made by the API logs a node in, and the node appears in the API.
//
// It follows the published OpenAPI document, the official Go client, the protocol of
// tailscale.com v1.102, and where these are silent or wrong, what others measured on
// real tailnets. The source of such an answer is named beside the code, and
// testdata/replies holds requests and replies with their sources. What no source shows
// is called an assumption. Behaviours that depend on a tailnet, on its plan or on
// timing are Switches.
//
// It knows one tailnet and no interactive logins. Nothing of the product may import
// it: it serves tests and the lab.
package tailnetsim

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

// A Mode is a way in which Envoys subscribe to endpoints.
type Mode string

// Modes.
const (
	// ModeGoogleGRPC needs nothing in an Envoy's bootstrap, and uses a connection for each target.
	ModeGoogleGRPC Mode = "GoogleGRPC"

	// ModeXDSTP uses one stream for each Envoy, and needs the authority tailscale in its bootstrap.
	ModeXDSTP Mode = "XDSTP"

	// ModeAuto is ModeXDSTP for Envoys whose bootstrap has the authority, and ModeGoogleGRPC for others.
	ModeAuto Mode = "Auto"
)

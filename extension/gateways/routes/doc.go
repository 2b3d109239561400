// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package routes plans the HTTPRoutes and GRPCRoutes that are generated for a TailscaleGateway: which
// targets have one, at which host, path and listeners, and which other route has the place already.
// It also finds the routes of users that a Gateway has accepted, with their listeners. The package is
// pure: it looks up no object, and writes none.
package routes

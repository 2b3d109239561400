// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateways implements the extension's part of TailscaleGateways. It writes one
// GatewayReport for each, with the routes that the Gateway has accepted, from which a function
// composes Tailscale Services. It also writes the generated HTTPRoutes and GRPCRoutes.
//
// The function plan is pure and computes the desired objects by three packages: routes, protect and
// report. A Controller reads from the extension's cache by indexes: it reads one TailscaleGateway and
// the objects of its Gateway only. One replica writes, unlike in package reconcile, because only the
// replica whose write the API server refused has the reason. Each replica adds the hooks that it
// answered itself.
package gateways

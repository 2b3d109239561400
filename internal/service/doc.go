// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package service holds the rules of a TailscaleServices that proxies and Gateways must agree on:
// which backends answer a port, in which order, where proxies terminate TLS, and the defaults of
// health checks. It is pure. The function of TailscaleServices uses it for proxies, and the
// extension of Envoy Gateway for routes.
package service

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package report decides what is in the GatewayReport of a TailscaleGateway: which routes, with which
// ports, hosts and backends, within the limits of a report. The content of an earlier report stays. The
// package is pure: it looks up no object.
package report

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts, the dashboard and the PodMonitors in the chart
// tailscale-gateway, over metrics of the provider, the proxies' agents and the extension.
package monitoring

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring carries alerts for Prometheus and a dashboard for Grafana, over
// metrics of the provider, the proxies' agents and the extension, and PodMonitors. The metrics
// themselves live with what they measure.
package monitoring

import _ "embed"

// Rules are alerts: a rule file of Prometheus, and the spec of a PrometheusRule.
//
//go:embed rules.yaml
var Rules []byte

// Dashboard for Grafana, which asks for a Prometheus.
//
//go:embed dashboard.json
var Dashboard []byte

// PodMonitors let the Prometheus Operator scrape the provider and the functions.
//
//go:embed podmonitors.yaml
var PodMonitors []byte

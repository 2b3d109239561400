// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package charts carries what of our Helm charts others need to know. The charts
// themselves are the folders beside it.
package charts

import _ "embed"

// Names of charts.
const (
	// Install is the name of the chart that installs the packages and all that they need.
	Install = "tailscale-gateway"

	// Extension is the name of the extension's chart, of its Deployment, and of the Service for
	// hooks.
	Extension = "tailscale-gateway-extension"
)

// Folder is the folder of the charts, in the repository.
const Folder = "package/charts"

// ExtensionCRDs is the folder of the CRDs of the extension's chart, in the repository.
const ExtensionCRDs = Folder + "/" + Extension + "/files/crds"

// Rules are alerts of the chart Install: a rule file of Prometheus, and the spec of a
// PrometheusRule.
//
//go:embed tailscale-gateway/files/rules.yaml
var Rules []byte

// Dashboard is a dashboard for Grafana with a Prometheus.
//
//go:embed tailscale-gateway/files/dashboard.json
var Dashboard []byte

// PodMonitors let the Prometheus Operator scrape the provider and the function.
//
//go:embed tailscale-gateway/files/podmonitors.yaml
var PodMonitors []byte

// ExtensionRules are the RBAC rules of the extension's service account.
//
//go:embed tailscale-gateway-extension/files/extension-rules.yaml
var ExtensionRules []byte

// Placeholders, Failover, Gateways, Discoveries and Bootstrap are those that it has unless the chart's values
// turn them off.
var (
	//go:embed tailscale-gateway-extension/files/bootstrap-rules.yaml
	Bootstrap []byte

	//go:embed tailscale-gateway-extension/files/discovery-rules.yaml
	Discoveries []byte

	//go:embed tailscale-gateway-extension/files/placeholder-rules.yaml
	Placeholders []byte

	//go:embed tailscale-gateway-extension/files/failover-rules.yaml
	Failover []byte

	//go:embed tailscale-gateway-extension/files/gateway-rules.yaml
	Gateways []byte
)

// EnvoyCertificate and EnvoyAuthority are the files by which Envoys find their certificate and
// that of the extension's authority.
var (
	//go:embed tailscale-gateway-extension/files/envoy-certificate.yaml
	EnvoyCertificate []byte

	//go:embed tailscale-gateway-extension/files/envoy-authority.yaml
	EnvoyAuthority []byte
)

// EnvoyGateway are the RBAC rules that Envoy Gateway's service account needs in addition to
// those of its chart.
//
//go:embed tailscale-gateway-extension/files/envoy-gateway-rules.yaml
var EnvoyGateway []byte

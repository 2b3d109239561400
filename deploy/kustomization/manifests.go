// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package kustomization carries the objects of the chart tailscale-gateway with its default values,
// in a folder for kubectl and kustomize.
package kustomization

import _ "embed"

// Install is the output of "helm template" for the chart. TestInstall of package charts keeps it
// up to date.
//
//go:embed install.yaml
var Install []byte

// Names of the ValidatingAdmissionPolicies in Install, and of their bindings.
const (
	// PolicyInternalKinds keeps other clients from writing internal kinds.
	PolicyInternalKinds = "tailscale-gateway-internal-kinds"

	// PolicyExtensionRoutes confines the extension to the routes that it created.
	PolicyExtensionRoutes = "tailscale-gateway-extension-routes"
)

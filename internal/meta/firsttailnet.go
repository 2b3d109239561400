// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package meta

// The chart tailscale-gateway requests its first TailscaleTailnet by a ConfigMap in the provider's
// namespace: templates/tailnet.yaml.
const (
	// FirstTailnetConfigMap is the name of the ConfigMap.
	FirstTailnetConfigMap = "tailscale-gateway-first-tailnet"

	// FirstTailnetName is the key of the name of the TailscaleTailnet.
	FirstTailnetName = "name"

	// FirstTailnetSpec is the key of the spec of the TailscaleTailnet, as YAML.
	FirstTailnetSpec = "spec"

	// FirstTailnetCreated is the key of the provider's record: the name of the TailscaleTailnet that it has
	// created, or that existed. The chart does not set it, so upgrades keep it. It is no annotation,
	// because kubectl wait --for=jsonpath needs no escapes for it.
	FirstTailnetCreated = "created"
)

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package policies writes the status of TailscaleRoutePolicies: the Gateways where they have an
// effect, the active rules, and conflicts between rules. It also creates Discoveries for the
// devices in policies. It adds to the status of BackendTLSPolicies why the extension does not
// apply them. The status depends on a snapshot only. One replica writes. The packages
// hooks and xds apply the policies to Envoy.
package policies

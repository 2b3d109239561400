// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package limits holds the extension's limits on what one tenant may use of a thing that tenants
// share. A limit per object needs such a limit for the product: nothing limits the number of objects.
package limits

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

const (
	// ProbeSlots is the number of concurrent probes of endpoints, which namespaces share
	// (fair.Shares).
	ProbeSlots = 128

	// ProbeTimeout is the greatest time of a probe.
	ProbeTimeout = 10 * time.Second

	// ProbeInterval is the shortest interval of probes.
	ProbeInterval = time.Second

	// NamespaceProbes is the number of endpoints of a namespace's targets that are probed. Half of
	// ProbeSlots probe as many in 10 seconds, the default interval, if each takes two thirds of a second.
	NamespaceProbes = 1024

	// LookupSlots is the number of concurrent DNS lookups, which namespaces share (fair.Slots).
	LookupSlots = 64

	// NamespaceEndpoints is the number of endpoints of a namespace's targets, each of which needs some
	// 300 bytes in each replica and more in each Envoy. An endpoint counts for each target that has it.
	NamespaceEndpoints = 8192

	// Secrets is the number of Secrets with client certificates that are watched for policies, and
	// again for Gateways.
	Secrets = 1024

	// NamespaceSecrets is the part of Secrets that the policies, or the Gateways, of one namespace may
	// name.
	NamespaceSecrets = 64

	// ConfigMaps is the number of ConfigMaps with certificates that are watched for BackendTLSPolicies,
	// each of which may have Authorities in each replica.
	ConfigMaps = 1024

	// NamespaceConfigMaps is the part of ConfigMaps that the policies of one namespace may name.
	NamespaceConfigMaps = 64

	// RouteInsertions are the estimated bytes of the routes that policies insert before those of an
	// HTTPRoute or GRPCRoute.
	RouteInsertions = 2 << 20

	// NamespaceInsertions are the estimated bytes of inserted routes for the routes of a namespace.
	NamespaceInsertions = 16 << 20

	// GatewayInsertions are the estimated bytes of inserted routes for the routes of a Gateway.
	GatewayInsertions = 64 << 20

	// Authorities are the bytes of the certificates that a BackendTLSPolicy trusts.
	Authorities = backendtls.MaxAuthorities
)

// Bytes returns a number of bytes for people.
func Bytes(n int) string { return fmt.Sprintf("%d MiB", n>>20) }

// A Limit is one limit, for people and for the tests.
type Limit struct {
	// Name of the constant.
	Name string

	// Texts for people: the subject of the limit, its value, and the effect beyond it.
	Subject, Value, Beyond string

	// Test is the test of the limit, in the package of that path.
	Test, Package string
}

// Row returns the limit's row of docs/limits.md.
func (l Limit) Row() string { return fmt.Sprintf("| %s | %s | %s |", l.Subject, l.Value, l.Beyond) }

// shared describes the value of a pool.
func shared(n int) string {
	return fmt.Sprintf("%d, of which one namespace alone gets %d; namespaces share the rest in the same way", n, n/2)
}

// Table returns all limits, in the order of docs/limits.md.
func Table() []Limit {
	return []Limit{
		{
			Name: "ProbeSlots", Subject: "concurrent probes of endpoints", Value: shared(ProbeSlots),
			Beyond: "probes of the namespace wait, and those of others do not",
			Test:   "TestProbeSlots", Package: "extension/health",
		},
		{
			Name: "ProbeTimeout", Subject: "`timeout` of a probe", Value: ProbeTimeout.String(),
			Beyond: "counts as the limit",
			Test:   "TestServicesShape", Package: "extension/index",
		},
		{
			Name: "ProbeInterval", Subject: "`interval` of probes, at least", Value: ProbeInterval.String(),
			Beyond: "less counts as the limit",
			Test:   "TestServicesShape", Package: "extension/index",
		},
		{
			Name: "NamespaceProbes", Subject: "endpoints of a namespace's targets that are probed", Value: strconv.Itoa(NamespaceProbes),
			Beyond: "those that came last are not probed: they are used like healthy ones until Envoy's own checks fail, and the page `/endpoints` says so",
			Test:   "TestNamespaceProbes", Package: "extension/health",
		},
		{
			Name: "LookupSlots", Subject: "concurrent DNS lookups", Value: shared(LookupSlots),
			Beyond: "lookups of the namespace wait, and those of others do not",
			Test:   "TestLookupSlots", Package: "extension/dns",
		},
		{
			Name: "NamespaceEndpoints", Subject: "endpoints of a namespace's targets, each counted for each port of an object that routes name", Value: strconv.Itoa(NamespaceEndpoints),
			Beyond: "targets of the newest objects have fewer endpoints or none, as the target's page and, without any, an event of the routes say",
			Test:   "TestNamespaceEndpoints", Package: "extension/index",
		},
		{
			Name: "NamespaceSecrets", Subject: "Secrets with client certificates that the policies of a namespace name, and that its Gateways name", Value: strconv.Itoa(NamespaceSecrets),
			Beyond: "those of the oldest objects are presented. Requests that need another are answered 503, and the status has the reason `TooManyClientCertificates`",
			Test:   "TestObjectShares", Package: "extension/index",
		},
		{
			Name: "Secrets", Subject: "such Secrets in all namespaces", Value: strconv.Itoa(Secrets),
			Beyond: "the limit of all namespaces falls alike",
			Test:   "TestObjectShares", Package: "extension/index",
		},
		{
			Name: "NamespaceConfigMaps", Subject: "ConfigMaps with certificates that the BackendTLSPolicies of a namespace for our kinds name", Value: strconv.Itoa(NamespaceConfigMaps),
			Beyond: "those of the oldest policies are read. Requests that need another are answered 503, and the policy's status has the reason `TooManyConfigMaps`",
			Test:   "TestObjectShares", Package: "extension/index",
		},
		{
			Name: "ConfigMaps", Subject: "such ConfigMaps in all namespaces", Value: strconv.Itoa(ConfigMaps),
			Beyond: "the limit of all namespaces falls alike",
			Test:   "TestObjectShares", Package: "extension/index",
		},
		{
			Name: "RouteInsertions", Subject: "estimated bytes of the Envoy routes that policies insert before those of an HTTPRoute or GRPCRoute", Value: Bytes(RouteInsertions),
			Beyond: "requests of the route that a policy applies to are answered 403, and the policy's status says so",
			Test:   "TestInsertions", Package: "extension/index",
		},
		{
			Name: "NamespaceInsertions", Subject: "the same for all routes of a namespace", Value: Bytes(NamespaceInsertions),
			Beyond: "the same for its newest routes",
			Test:   "TestInsertions", Package: "extension/index",
		},
		{
			Name: "GatewayInsertions", Subject: "the same for all routes of a Gateway", Value: Bytes(GatewayInsertions),
			Beyond: "the same for the newest routes of the namespaces with the most",
			Test:   "TestInsertions", Package: "extension/index",
		},
		{
			Name: "Authorities", Subject: "bytes of the certificates that a BackendTLSPolicy for one of our kinds trusts", Value: fmt.Sprintf("%d KiB", Authorities>>10),
			Beyond: "requests are answered 503, and the policy's status says why",
			Test:   "TestAuthorities", Package: "internal/backendtls",
		},
	}
}

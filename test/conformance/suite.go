// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"sigs.k8s.io/gateway-api/pkg/features"

	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

const (
	// gatewayClass is the class in gatewayclass.yaml.
	gatewayClass = "envoy-gateway"

	// usableAddress is one of the lab's LoadBalancer addresses that stays free, because the lowest
	// are assigned first.
	usableAddress = "10.201.0.250"

	// unusableAddress is not an address, so Envoy Gateway cannot use it.
	unusableAddress = "unusable.example.com"

	// timeouts of steps without a limit in conformant implementations: both runs share a small
	// machine. The limit for the response of a route is unchanged.
	timeouts = "CreateTimeout:120;DeleteTimeout:120;GetTimeout:30;GatewayMustHaveAddress:300;GatewayMustHaveCondition:300;" +
		"GatewayStatusMustHaveListeners:180;GatewayListenersMustHaveConditions:180;ListenerSetMustHaveCondition:300;" +
		"ListenerSetListenersMustHaveConditions:180;HTTPRouteMustNotHaveParents:180;HTTPRouteMustHaveCondition:180;" +
		"TLSRouteMustHaveCondition:180;TCPRouteMustHaveCondition:180;UDPRouteMustHaveCondition:180;RouteMustHaveParents:180;" +
		"NamespacesMustBeReady:900;LatestObservedGenerationSet:180;DefaultTestTimeout:180"
)

// Namespaces that the tests create, and delete at the end.
var namespaces = []string{"gateway-conformance-infra", "gateway-conformance-app-backend", "gateway-conformance-web-backend"}

// exempt returns the features that Envoy Gateway does not claim: those of meshes, and those that
// EnvoyGatewaySuite of its test/conformance/suite.go leaves out at v1.9.0 for its default mode.
func exempt() []string {
	out := []string{
		string(features.GatewayHTTPSListenerDetectMisdirectedRequestsFeature.Name),
		string(features.GatewayInfrastructurePropagationFeature.Name),
	}
	for _, f := range slices.Concat(features.MeshCoreFeatures.UnsortedList(), features.MeshExtendedFeatures.UnsortedList()) {
		out = append(out, string(f.Name))
	}
	slices.Sort(out)
	return out
}

// skipped returns the tests that Envoy Gateway leaves out, by the same file.
func skipped() []string { return []string{"GatewayInfrastructure"} }

// suiteFlags returns the flags of upstream's program. With only one test selected, nothing is left
// out, as in Envoy Gateway.
func suiteFlags(report, project, version, selection string) []string {
	out := []string{
		"-test.v=test2json",
		"-test.run=^TestConformance$",
		"-test.timeout=4h",
		"-gateway-class=" + gatewayClass,
		"-all-features",
		"-exempt-features=" + strings.Join(exempt(), ","),
		"-conformance-profiles=GATEWAY-HTTP,GATEWAY-TLS,GATEWAY-GRPC",
		"-usable-address=" + usableAddress,
		"-unusable-address=" + unusableAddress,
		"-timeout-config-overrides=" + timeouts,
		"-report-output=" + report,
		"-organization=" + products.Owner,
		"-project=" + project,
		"-version=" + version,
		"-url=" + products.Source,
		"-contact=" + products.Source + "/issues",
	}
	if selection != "" {
		return append(out, "-run-test="+selection)
	}
	return append(out, "-skip-tests="+strings.Join(skipped(), ","))
}

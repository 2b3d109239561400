// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of Envoy Gateway's policies, in addition to KindTrafficPolicy.
const (
	kindSecurityPolicy  = "SecurityPolicy"
	kindExtensionPolicy = "EnvoyExtensionPolicy"
	kindPatchPolicy     = "EnvoyPatchPolicy"
	kindClientPolicy    = "ClientTrafficPolicy"
)

// policyKinds are the kinds of Envoy Gateway's policies (envoyproxy/gateway v1.9 api/v1alpha1), and
// the fields of their specs that do not protect a backend: they neither refuse requests, nor limit
// them, nor change what a backend may believe of the client. A field of an object is written with a
// dot. A policy with another field protects, also if the field is newer than this list. Of a kind
// without fields, each policy protects.
var policyKinds = map[string][]string{
	kindSecurityPolicy:  nil,
	kindExtensionPolicy: nil,
	kindPatchPolicy:     nil,
	// TLS with clientValidation, headers and clientIPDetection protect.
	kindClientPolicy: {
		"tcpKeepalive", "enableProxyProtocol", "proxyProtocol", "path", "timeout", "connection",
		"http1", "http2", "http3", "grpc", "healthCheck", "scheme",
		"tls.minVersion", "tls.maxVersion", "tls.ciphers", "tls.ecdhCurves", "tls.signatureAlgorithms",
		"tls.alpnProtocols", "tls.fingerprints", "tls.session",
	},
	// Limits of rates, bandwidth and sizes protect.
	KindTrafficPolicy: {
		"loadBalancer", "retry", "proxyProtocol", "tcpKeepalive", "healthCheck", "circuitBreaker", "timeout",
		"connection", "dns", "http2", "mergeType", "faultInjection", "admissionControl", "useClientProtocol",
		"compression", "compressor", "responseOverride", "httpUpgrade", "telemetry", "routingType",
	},
}

// PolicyKinds returns the kinds of Envoy Gateway's policies, sorted.
func PolicyKinds() []string { return slices.Sorted(maps.Keys(policyKinds)) }

// NewPolicy returns an empty policy of Envoy Gateway of a kind.
func NewPolicy(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: GroupEnvoyGateway, Version: "v1alpha1", Kind: kind})
	return o
}

// NewPolicies returns an empty list of Envoy Gateway's policies of a kind.
func NewPolicies(kind string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: GroupEnvoyGateway, Version: "v1alpha1", Kind: kind + "List"})
	return l
}

// Protects reports whether a policy of Envoy Gateway may protect the backends behind its targets.
func Protects(o *unstructured.Unstructured) bool {
	open, listed := policyKinds[o.GetKind()]
	if !listed || open == nil {
		return true
	}
	// A policy without fields has no effect.
	spec, _ := o.Object["spec"].(map[string]any)
	for field, value := range spec {
		if isTarget(field) || slices.Contains(open, field) {
			continue
		}
		fields, ok := value.(map[string]any)
		if !ok || !slices.ContainsFunc(open, func(f string) bool { return strings.HasPrefix(f, field+".") }) {
			return true
		}
		for sub := range fields {
			if !slices.Contains(open, field+"."+sub) {
				return true
			}
		}
	}
	return false
}

// isTarget reports whether a field of a policy's spec selects its targets.
func isTarget(field string) bool {
	return field == "targetRef" || field == "targetRefs" || field == "targetSelectors"
}

// stripTargets keeps only the targets of a policy that protects whatever it contains, which may be
// programs.
func stripTargets(spec map[string]any) {
	maps.DeleteFunc(spec, func(field string, _ any) bool { return !isTarget(field) })
}

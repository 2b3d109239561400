// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// configMapRef returns a reference to a ConfigMap.
func configMapRef(name string) gwapiv1.LocalObjectReference {
	return gwapiv1.LocalObjectReference{Kind: KindConfigMap, Name: gwapiv1.ObjectName(name)}
}

// TestCheckSecure checks what the schema of an input does not reject.
func TestCheckSecure(t *testing.T) {
	trusting := func(refs ...gwapiv1.LocalObjectReference) gatewayv1alpha1.Backend {
		return gatewayv1alpha1.Backend{Name: "web", Port: 8443, Protocol: gatewayv1alpha1.BackendProtocolHTTPS, TLS: &gatewayv1alpha1.BackendTLS{CACertificateRefs: refs}}
	}
	plain, both, gateway := trusting(), trusting(configMapRef("ca")), trusting()
	plain.Protocol = gatewayv1alpha1.BackendProtocolHTTP
	both.TLS.WellKnownCACertificates = gwapiv1.WellKnownCACertificatesSystem
	gateway.Kind = gatewayv1alpha1.BackendKindGateway
	secret, foreign := configMapRef("ca"), configMapRef("ca")
	secret.Kind, foreign.Group = "Secret", "example.com"
	var many []gatewayv1alpha1.Backend
	for i := range MaxConfigMaps + 1 {
		many = append(many, trusting(configMapRef(fmt.Sprintf("ca-%d", i))))
	}
	cases := map[string]struct {
		reason   string
		backends []gatewayv1alpha1.Backend
		want     string
	}{
		"System":      {reason: "Without references the authorities are those of the system.", backends: []gatewayv1alpha1.Backend{trusting()}},
		"ConfigMap":   {reason: "A ConfigMap has authorities.", backends: []gatewayv1alpha1.Backend{trusting(configMapRef("ca"))}},
		"Plain":       {reason: "Settings of TLS have no effect without HTTPS.", backends: []gatewayv1alpha1.Backend{plain}, want: "spec.backends[0].tls needs protocol HTTPS"},
		"Gateway":     {reason: "A Gateway's certificate is for the hosts of its routes.", backends: []gatewayv1alpha1.Backend{gateway}, want: "spec.backends[0].protocol HTTPS is not for kind TailscaleGateway; use TCP with a listener of protocol HTTPS, or HTTP with one of protocol HTTP"},
		"Two":         {reason: "One ConfigMap is supported.", backends: []gatewayv1alpha1.Backend{trusting(configMapRef("a"), configMapRef("b"))}, want: "spec.backends[0].tls.caCertificateRefs must be one ConfigMap"},
		"Secret":      {reason: "A Secret is not read.", backends: []gatewayv1alpha1.Backend{trusting(secret)}, want: "spec.backends[0].tls.caCertificateRefs must be one ConfigMap"},
		"OtherGroup":  {reason: "Nor is another kind of this name.", backends: []gatewayv1alpha1.Backend{trusting(foreign)}, want: "spec.backends[0].tls.caCertificateRefs must be one ConfigMap"},
		"Both":        {reason: "One source is unambiguous.", backends: []gatewayv1alpha1.Backend{both}, want: "spec.backends[0].tls has both caCertificateRefs and wellKnownCACertificates; remove one"},
		"ManyInAll":   {reason: "The message with the ConfigMaps has a limit.", backends: many, want: "spec.backends name 17 ConfigMaps in tls.caCertificateRefs, and may name 16; put the certificates of several into one"},
		"EnoughInAll": {reason: "As many as the limit are permitted.", backends: many[1:]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkSecure(gatewayv1alpha1.TailscaleServicesSpec{Backends: tc.backends}); err != nil {
				got = err.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ncheckSecure(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCheckAuthorities checks that the certificates of an attachment have a limit together, each once.
func TestCheckAuthorities(t *testing.T) {
	half := backendtls.Authorities{Certificates: []string{strings.Repeat("x", backendtls.MaxAuthorities/2)}}
	authorities := map[string]backendtls.Authorities{"a": half, "b": half, "c": {Certificates: []string{"x"}}}
	port := func(names ...string) []Assignment {
		var out Assignment
		for _, name := range names {
			b := gatewayv1alpha1.Backend{Protocol: gatewayv1alpha1.BackendProtocolHTTPS, TLS: &gatewayv1alpha1.BackendTLS{CACertificateRefs: []gwapiv1.LocalObjectReference{configMapRef(name)}}}
			out.Backend, out.Shares = b, append(out.Shares, Share{Backend: b})
		}
		return []Assignment{out}
	}
	if err := checkAuthorities(authorities, port("a", "b", "a", "b")); err != nil {
		t.Errorf("a ConfigMap counts once, got %v", err)
	}
	err := checkAuthorities(authorities, port("a", "b", "c"))
	if err == nil || !strings.Contains(err.Message, "more than 64 KiB of certificates together") {
		t.Errorf("want that the limit is exceeded, got %v", err)
	}
}

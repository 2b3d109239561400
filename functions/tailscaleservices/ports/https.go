// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// Agents get the authorities that backends with the protocol HTTPS name in the attachment, so they need
// no right to read ConfigMaps. Certificates are no secret.

const (
	// KindConfigMap is the kind of objects with authorities.
	KindConfigMap = "ConfigMap"

	// MaxConfigMaps is the maximum number of ConfigMaps that the backends of an object name: Crossplane
	// sends them all to the function, in one message.
	MaxConfigMaps = 16
)

// checkSecure returns an error for settings of TLS that the schema of an input does not reject.
func checkSecure(spec gatewayv1alpha1.TailscaleServicesSpec) *SpecError {
	for i, b := range spec.Backends {
		switch {
		case b.TLS != nil && b.Protocol != gatewayv1alpha1.BackendProtocolHTTPS:
			return invalidBackends("spec.backends[%d].tls needs protocol HTTPS", i)
		case b.Kind == gatewayv1alpha1.BackendKindGateway && b.Protocol == gatewayv1alpha1.BackendProtocolHTTPS:
			return invalidBackends("spec.backends[%d].protocol HTTPS is not for kind %s; use TCP with a listener of protocol HTTPS, or HTTP with one of protocol HTTP", i, gatewayv1alpha1.BackendKindGateway)
		case b.TLS == nil:
			continue
		}
		refs := b.TLS.CACertificateRefs
		if len(refs) > 1 || slices.ContainsFunc(refs, func(r gwapiv1.LocalObjectReference) bool { return r.Group != "" || r.Kind != KindConfigMap }) {
			return invalidBackends("spec.backends[%d].tls.caCertificateRefs must be one ConfigMap", i)
		}
		if len(refs) > 0 && b.TLS.WellKnownCACertificates != "" {
			return invalidBackends("spec.backends[%d].tls has both caCertificateRefs and wellKnownCACertificates; remove one", i)
		}
	}
	if n := len(ConfigMaps(spec)); n > MaxConfigMaps {
		return invalidBackends("spec.backends name %d ConfigMaps in tls.caCertificateRefs, and may name %d; put the certificates of several into one", n, MaxConfigMaps)
	}
	return nil
}

// configMapOf returns the name of the ConfigMap with the authorities that a backend trusts. It is empty
// for those of the system.
func configMapOf(b gatewayv1alpha1.Backend) string {
	if b.Protocol != gatewayv1alpha1.BackendProtocolHTTPS || b.TLS == nil || len(b.TLS.CACertificateRefs) == 0 {
		return ""
	}
	return string(b.TLS.CACertificateRefs[0].Name)
}

// ConfigMaps returns the names of the ConfigMaps that backends name, sorted.
func ConfigMaps(spec gatewayv1alpha1.TailscaleServicesSpec) []string {
	out := map[string]bool{}
	for _, b := range spec.Backends {
		if name := configMapOf(b); name != "" {
			out[name] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// secured returns the backends of a port with the protocol HTTPS, and where proxies reach them.
func (a Assignment) secured() []Share {
	switch {
	case a.Backend.Protocol != gatewayv1alpha1.BackendProtocolHTTPS:
		return nil
	case len(a.Shares) > 0:
		return a.Shares
	}
	return []Share{{Backend: a.Backend, Address: a.Address}}
}

// checkAuthorities returns an error if authorities that the backends of ports trust cannot be used.
func checkAuthorities(authorities map[string]backendtls.Authorities, ports []Assignment) *SpecError {
	for _, a := range ports {
		for _, sh := range a.secured() {
			name := configMapOf(sh.Backend)
			if problem := authorities[name].Problem; problem != "" {
				return invalidTLS("backend %q names ConfigMap %s in tls.caCertificateRefs, which %s", sh.Backend.Name, name, problem)
			}
		}
	}
	size := 0
	for _, a := range Trusted(authorities, ports) {
		size += len(a.Certificates)
	}
	if size > backendtls.MaxAuthorities {
		return invalidTLS("the ConfigMaps in tls.caCertificateRefs of spec.backends have more than %d KiB of certificates together; leave only the authorities that sign the backends' certificates, or use wellKnownCACertificates System", backendtls.MaxAuthorities>>10)
	}
	return nil
}

// Trusted returns the authorities that the backends of ports trust, by name.
func Trusted(authorities map[string]backendtls.Authorities, ports []Assignment) []tailnetv1alpha1.AttachmentAuthorities {
	names := map[string]bool{}
	for _, a := range ports {
		for _, sh := range a.secured() {
			if name := configMapOf(sh.Backend); name != "" {
				names[name] = true
			}
		}
	}
	var out []tailnetv1alpha1.AttachmentAuthorities
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, tailnetv1alpha1.AttachmentAuthorities{Name: name, Certificates: strings.Join(authorities[name].Certificates, "")})
	}
	return out
}

// backendTLS returns how proxies verify the certificate of a backend. It is nil unless the backend has
// the protocol HTTPS.
func backendTLS(sh Share) *tailnetv1alpha1.AttachmentBackendTLS {
	if sh.Backend.Protocol != gatewayv1alpha1.BackendProtocolHTTPS {
		return nil
	}
	out := &tailnetv1alpha1.AttachmentBackendTLS{Authorities: configMapOf(sh.Backend)}
	if sh.Backend.TLS != nil {
		out.ServerName = sh.Backend.TLS.Hostname
	}
	// Certificates are for names without the dot at the end.
	out.ServerName = cmp.Or(out.ServerName, strings.TrimSuffix(sh.Address.Host, "."))
	return out
}

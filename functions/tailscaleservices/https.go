// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

// Agents get the authorities that backends with the protocol HTTPS name in the attachment, so they need
// no right to read ConfigMaps. Certificates are no secret.

const (
	kindConfigMap = "ConfigMap"

	// maxConfigMaps is the maximum number of ConfigMaps that the backends of an object name: Crossplane
	// sends them all to the function, in one message.
	maxConfigMaps = 16
)

// checkSecure returns an error for settings of TLS that the schema of an input does not reject.
func checkSecure(spec gatewayv1alpha1.TailscaleServicesSpec) *specError {
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
		if len(refs) > 1 || slices.ContainsFunc(refs, func(r gwapiv1.LocalObjectReference) bool { return r.Group != "" || r.Kind != kindConfigMap }) {
			return invalidBackends("spec.backends[%d].tls.caCertificateRefs must be one ConfigMap", i)
		}
		if len(refs) > 0 && b.TLS.WellKnownCACertificates != "" {
			return invalidBackends("spec.backends[%d].tls has both caCertificateRefs and wellKnownCACertificates; remove one", i)
		}
	}
	if n := len(configMaps(spec)); n > maxConfigMaps {
		return invalidBackends("spec.backends name %d ConfigMaps in tls.caCertificateRefs, and may name %d; put the certificates of several into one", n, maxConfigMaps)
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

// configMaps returns the names of the ConfigMaps that backends name, sorted.
func configMaps(spec gatewayv1alpha1.TailscaleServicesSpec) []string {
	out := map[string]bool{}
	for _, b := range spec.Backends {
		if name := configMapOf(b); name != "" {
			out[name] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// requireConfigMap returns the requirement of a ConfigMap with authorities.
func requireConfigMap(namespace, name string) compose.Requirement {
	return compose.Requirement{Key: "authorities-" + name, APIVersion: "v1", Kind: kindConfigMap, Namespace: namespace, Name: name}
}

// readAuthorities returns the authorities that backends name, by ConfigMap, and whether Crossplane has
// read them all. Those of a spec with too many ConfigMaps are not read.
func readAuthorities(r *compose.Run, owner compose.Owner, spec gatewayv1alpha1.TailscaleServicesSpec) (map[string]backendtls.Authorities, bool, error) {
	names := configMaps(spec)
	if len(names) > maxConfigMaps {
		return nil, true, nil
	}
	out, all := map[string]backendtls.Authorities{}, true
	for _, name := range names {
		found, looked, err := compose.Lookup[corev1.ConfigMap](r, requireConfigMap(owner.Namespace, name))
		if err != nil {
			return nil, false, err
		}
		all = all && looked
		var o *corev1.ConfigMap
		if len(found) > 0 {
			o = &found[0]
		}
		out[name] = backendtls.ParseAuthorities(o)
	}
	return out, all, nil
}

// secured returns the backends of a port with the protocol HTTPS, and where proxies reach them.
func (a assignment) secured() []share {
	switch {
	case a.backend.Protocol != gatewayv1alpha1.BackendProtocolHTTPS:
		return nil
	case len(a.shares) > 0:
		return a.shares
	}
	return []share{{backend: a.backend, address: a.address}}
}

// checkAuthorities returns an error if authorities that the backends of ports trust cannot be used.
func (f facts) checkAuthorities(ports []assignment) *specError {
	for _, a := range ports {
		for _, sh := range a.secured() {
			name := configMapOf(sh.backend)
			if problem := f.authorities[name].Problem; problem != "" {
				return invalidTLS("backend %q names ConfigMap %s in tls.caCertificateRefs, which %s", sh.backend.Name, name, problem)
			}
		}
	}
	size := 0
	for _, a := range f.trusted(ports) {
		size += len(a.Certificates)
	}
	if size > backendtls.MaxAuthorities {
		return invalidTLS("the ConfigMaps in tls.caCertificateRefs of spec.backends have more than %d KiB of certificates together; leave only the authorities that sign the backends' certificates, or use wellKnownCACertificates System", backendtls.MaxAuthorities>>10)
	}
	return nil
}

// trusted returns the authorities that the backends of ports trust, by name.
func (f facts) trusted(ports []assignment) []tailnetv1alpha1.AttachmentAuthorities {
	names := map[string]bool{}
	for _, a := range ports {
		for _, sh := range a.secured() {
			if name := configMapOf(sh.backend); name != "" {
				names[name] = true
			}
		}
	}
	var out []tailnetv1alpha1.AttachmentAuthorities
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, tailnetv1alpha1.AttachmentAuthorities{Name: name, Certificates: strings.Join(f.authorities[name].Certificates, "")})
	}
	return out
}

// backendTLS returns how proxies verify the certificate of a backend. It is nil unless the backend has
// the protocol HTTPS.
func backendTLS(sh share) *tailnetv1alpha1.AttachmentBackendTLS {
	if sh.backend.Protocol != gatewayv1alpha1.BackendProtocolHTTPS {
		return nil
	}
	out := &tailnetv1alpha1.AttachmentBackendTLS{Authorities: configMapOf(sh.backend)}
	if sh.backend.TLS != nil {
		out.ServerName = sh.backend.TLS.Hostname
	}
	// Certificates are for names without the dot at the end.
	out.ServerName = cmp.Or(out.ServerName, strings.TrimSuffix(sh.address.Host, "."))
	return out
}

// keepAuthorities adds to an attachment the observed authorities that its ports name and that it lacks,
// because they are those of a kept port.
func keepAuthorities(want, observed *tailnetv1alpha1.ServiceAttachment) {
	for _, p := range want.Spec.Ports {
		for _, b := range p.Backends {
			if b.TLS == nil {
				continue
			}
			named := func(a tailnetv1alpha1.AttachmentAuthorities) bool { return a.Name == b.TLS.Authorities }
			i := slices.IndexFunc(observed.Spec.Authorities, named)
			if i >= 0 && !slices.ContainsFunc(want.Spec.Authorities, named) {
				want.Spec.Authorities = append(want.Spec.Authorities, observed.Spec.Authorities[i])
			}
		}
	}
	slices.SortFunc(want.Spec.Authorities, func(a, b tailnetv1alpha1.AttachmentAuthorities) int { return cmp.Compare(a.Name, b.Name) })
}

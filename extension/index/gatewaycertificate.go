// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// certificateObjects are the client certificates that Gateways present.
type certificateObjects struct {
	certificates map[types.NamespacedName]*gatewayCertificate
}

// A gatewayCertificate is the client certificate of a Gateway.
type gatewayCertificate struct {
	ir.ClientCertificate

	// created is when the Gateway was.
	created time.Time
}

func newCertificateObjects() certificateObjects {
	return certificateObjects{certificates: map[types.NamespacedName]*gatewayCertificate{}}
}

// putCertificate stores the client certificate of a Gateway (Gateway API's
// spec.tls.backend), and marks those that a ReferenceGrant may permit.
func putCertificate(all *objects, change *input, p *pending) (bool, error) {
	switch o := change.Object.(type) {
	case *gwapiv1beta1.ReferenceGrant:
		for n, c := range all.certificates {
			if c.Secret.Namespace != n.Namespace {
				p.markName(certificateSection, n)
			}
		}
	case *gwapiv1.Gateway:
		p.markName(certificateSection, change.name)
		delete(all.certificates, change.name)
		if change.Deleted || o.Spec.TLS == nil || o.Spec.TLS.Backend == nil || o.Spec.TLS.Backend.ClientCertificateRef == nil {
			break
		}
		r := *o.Spec.TLS.Backend.ClientCertificateRef
		c := parse.ParseCertificateRef(change.name.Namespace, r)
		if !parse.IsSecret(r) {
			c.Reason, c.Problem = ir.ReasonInvalidCertificate, "spec.tls.backend.clientCertificateRef names no Secret"
		}
		all.certificates[change.name] = &gatewayCertificate{ClientCertificate: *c, created: o.CreationTimestamp.Time}
	default:
		return false, nil
	}
	return true, nil
}

// serveCertificates marks all Gateways with a client certificate.
func serveCertificates(all *objects, p *pending) {
	for n := range all.certificates {
		p.markName(certificateSection, n)
	}
}

// recomputeCertificates updates the client certificates of the marked Gateways, and of those whose
// Secrets are read now and were not before, or the reverse.
func recomputeCertificates(s *Store, e *edit) {
	for c := range e.marked(certificateSection) {
		readSecrets(s, c, s.objects.gatewaySecrets, s.objects.gatewaySecret(c.NamespacedName))
	}
	for c := range s.objects.gatewaySecrets.settle() {
		e.pending.mark(c)
	}
	for c := range e.marked(certificateSection) {
		gateway := c.NamespacedName
		var current *ir.ClientCertificate
		if stored := s.objects.certificates[gateway]; stored != nil && s.objects.serves(gateway) {
			copied := stored.ClientCertificate
			current = &copied
			if current.Problem == "" {
				s.objects.checkCertificate(current, gatewaysOf(gateway.Namespace), true, s.objects.gatewaySecrets)
			}
		}
		old := e.next.Certificates.Get(gateway)
		if reflect.DeepEqual(old, current) {
			continue
		}
		e.digest(c, certificateSum(gateway, old), certificateSum(gateway, current))
		e.next.Certificates.Put(e.next, gateway, current, current == nil)
	}
}

// gatewaySecret returns the Secret that may be read for a Gateway.
func (all *objects) gatewaySecret(gateway types.NamespacedName) objectWant {
	c := all.certificates[gateway]
	if c == nil || c.Problem != "" || !all.serves(gateway) || !all.permits(gatewaysOf(gateway.Namespace), c.Secret) {
		return objectWant{}
	}
	return objectWant{created: c.created, names: []types.NamespacedName{c.Secret}}
}

// certificateSum returns the part of a Gateway's client certificate in digests.
func certificateSum(gateway types.NamespacedName, c *ir.ClientCertificate) any {
	if c == nil {
		return nil
	}
	return struct {
		Presents    types.NamespacedName
		Certificate ir.ClientCertificate
	}{gateway, *c}
}

// digestCertificate returns the part of a Gateway's client certificate.
func digestCertificate(_ *Store, e *edit, c entry) digestPart {
	return digestPartOf(c.NamespacedName, certificateSum(c.NamespacedName, e.next.Certificates.Get(c.NamespacedName)))
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// kindCertificate is the kind of what a Gateway's digest has for the certificate that it
// presents.
const kindCertificate ir.RouteKind = "certificate"

func certificateKey(gateway types.NamespacedName) ir.RouteKey {
	return ir.RouteKey{Kind: kindCertificate, NamespacedName: gateway}
}

// putGatewayCertificate keeps what a Gateway presents to backends (Gateway API's
// spec.tls.backend).
func (w *world) putGatewayCertificate(o *gwapiv1.Gateway, n types.NamespacedName, gone bool, d *dirty) {
	d.certificates[n] = struct{}{}
	delete(w.certificates, n)
	if gone || o.Spec.TLS == nil || o.Spec.TLS.Backend == nil || o.Spec.TLS.Backend.ClientCertificateRef == nil {
		return
	}
	r := *o.Spec.TLS.Backend.ClientCertificateRef
	c := parse.ParseCertificateRef(n.Namespace, r)
	if !parse.IsSecret(r) {
		c.Reason, c.Problem = ir.ReasonInvalidCertificate, "spec.tls.backend.clientCertificateRef names no Secret"
	}
	w.certificates[n] = c
}

// advanceCertificate takes over which certificate a Gateway presents.
func (s *Store) advanceCertificate(c *change, gateway types.NamespacedName) {
	var now *ir.ClientCertificate
	var secrets []types.NamespacedName
	if was := s.world.certificates[gateway]; was != nil && (s.serves == nil || s.serves(gateway)) {
		copied := *was
		now = &copied
		if now.Problem == "" {
			s.world.judge(now, gatewaysOf(gateway.Namespace), true)
			if now.Reason != ir.ReasonNotPermitted {
				secrets = append(secrets, now.Secret)
			}
		}
	}
	s.want(certificateKey(gateway), secrets)
	old := c.next.Certificates.Get(gateway)
	if reflect.DeepEqual(old, now) {
		return
	}
	c.digest(certificateSum(gateway, old), certificateSum(gateway, now))
	c.certificates = append(c.certificates, gateway)
	c.next.Certificates.Put(c.next, gateway, now, now == nil)
}

// certificateSum is what a Gateway's certificate is in a digest.
func certificateSum(gateway types.NamespacedName, c *ir.ClientCertificate) any {
	if c == nil {
		return nil
	}
	return struct {
		Presents    types.NamespacedName
		Certificate ir.ClientCertificate
	}{gateway, *c}
}

// certificatePart is what it adds to the digest of the Gateway.
func certificatePart(c *change, gateway types.NamespacedName) part {
	now := c.next.Certificates.Get(gateway)
	if now == nil {
		return part{}
	}
	return part{gateways: []types.NamespacedName{gateway}, sum: ir.Sum(certificateSum(gateway, now))}
}

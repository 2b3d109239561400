// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

const (
	presentsClient = "{name: a, actions: [{type: BackendTLS, backendTLS: {clientCertificateRef: {name: client}}}]}"
	presentsOther  = "{name: a, actions: [{type: BackendTLS, backendTLS: {clientCertificateRef: {namespace: vault, name: client}}}]}"
	vaultGrant     = `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: shop, namespace: vault}
spec:
  from: [{group: gateway.tailscale.com, kind: TailscaleRoutePolicy, namespace: shop}]
  to: [{group: "", kind: Secret, name: client}]
`
)

func TestCertificates(t *testing.T) {
	vault := types.NamespacedName{Namespace: "vault", Name: "client"}
	good := objecttest.TLSSecret(t, objecttest.ECDSAKey(t))
	routeGrant := strings.NewReplacer("gateway.tailscale.com", "gateway.networking.k8s.io", "TailscaleRoutePolicy", "HTTPRoute").Replace(vaultGrant)
	type said struct {
		Secrets         []types.NamespacedName
		Reason, Problem string
		Notice          string
		KeyPair         bool
	}
	const validity = "Presents a certificate that is valid until 2026-06-01T01:00:00Z"
	const denied = "No ReferenceGrant in namespace vault lets a TailscaleRoutePolicy of namespace shop name Secret client"
	cases := map[string]struct {
		reason  string
		docs    []string
		secrets map[types.NamespacedName]ir.CertificateSecret
		want    said
	}{
		"Unknown": {
			reason: "No certificate should be presented before the Secret is read.",
			docs:   []string{policyOf("p", presentsClient), routeToWeb},
			want:   said{Secrets: []types.NamespacedName{name("client")}, Reason: ir.ReasonPending, Problem: "Secret shop/client is not known yet", Notice: "Requests are answered 503: Secret shop/client is not known yet"},
		},
		"Known": {
			reason:  "A known certificate should be presented, and the notice should say until when it is valid.",
			docs:    []string{policyOf("p", presentsClient), routeToWeb},
			secrets: map[types.NamespacedName]ir.CertificateSecret{name("client"): parse.ParseSecret(name("client"), good, objecttest.SecretTime)},
			want:    said{Secrets: []types.NamespacedName{name("client")}, Notice: validity, KeyPair: true},
		},
		"Missing": {
			reason:  "A missing Secret should be reported.",
			docs:    []string{policyOf("p", presentsClient), routeToWeb},
			secrets: map[types.NamespacedName]ir.CertificateSecret{name("client"): parse.ParseSecret(name("client"), nil, objecttest.SecretTime)},
			want: said{
				Secrets: []types.NamespacedName{name("client")}, Reason: ir.ReasonInvalidCertificate,
				Problem: "Secret shop/client does not exist; make it, or correct clientCertificateRef",
				Notice:  "Requests are answered 503: Secret shop/client does not exist; make it, or correct clientCertificateRef",
			},
		},
		"NotAttached": {
			reason: "The Secret of a policy that is not attached should not be read.",
			docs:   []string{policyOf("p", presentsClient)},
		},
		"NotGranted": {
			reason:  "A Secret of another namespace should not be read without a ReferenceGrant.",
			docs:    []string{policyOf("p", presentsOther), routeToWeb},
			secrets: map[types.NamespacedName]ir.CertificateSecret{vault: parse.ParseSecret(vault, good, objecttest.SecretTime)},
			want:    said{Reason: ir.ReasonNotPermitted, Problem: denied, Notice: "Requests are answered 503: " + denied},
		},
		"GrantOfRoutes": {
			reason:  "A ReferenceGrant for routes should not permit policies.",
			docs:    []string{policyOf("p", presentsOther), routeToWeb, routeGrant},
			secrets: map[types.NamespacedName]ir.CertificateSecret{vault: parse.ParseSecret(vault, good, objecttest.SecretTime)},
			want:    said{Reason: ir.ReasonNotPermitted, Problem: denied, Notice: "Requests are answered 503: " + denied},
		},
		"Granted": {
			reason:  "A ReferenceGrant for policies should permit the Secret, even if it is created later.",
			docs:    []string{policyOf("p", presentsOther), routeToWeb, vaultGrant},
			secrets: map[types.NamespacedName]ir.CertificateSecret{vault: parse.ParseSecret(vault, good, objecttest.SecretTime)},
			want:    said{Secrets: []types.NamespacedName{vault}, Notice: validity, KeyPair: true},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := NewStore()
			for _, doc := range tc.docs {
				apply(t, s, false, doc)
			}
			for n, h := range tc.secrets {
				s.SetSecret(n, &h)
			}
			p := s.Snapshot().Edit().Policies.Get(name("p"))
			c := p.Rules[0].Certificate
			got := said{Secrets: s.Secrets(), Reason: c.Reason, Problem: c.Problem, Notice: p.Notices["a"], KeyPair: s.Snapshot().Certificates().KeyPair(c) != nil}
			if len(got.Secrets) == 0 {
				got.Secrets = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCertificatesChange checks that each change of a certificate changes the Gateway's
// digest, and that the reader of Secrets is notified of the Secrets to read.
func TestCertificatesChange(t *testing.T) {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	s := NewStore()
	apply(t, s, false, policyOf("p", presentsClient), routeToWeb, gatewayOf("gw"))
	select {
	case <-s.SecretsChanged():
	default:
		t.Error("no notification of a Secret to read")
	}
	seen := map[string]bool{s.Snapshot().GatewayDigest(gw): true}
	step := func(description string, o *corev1.Secret) {
		t.Helper()
		h := parse.ParseSecret(name("client"), o, objecttest.SecretTime)
		s.SetSecret(name("client"), &h)
		d := s.Snapshot().GatewayDigest(gw)
		if seen[d] {
			t.Errorf("%s: the digest of the Gateway did not change", description)
		}
		seen[d] = true
		previous := s.Snapshot()
		s.SetSecret(name("client"), &h)
		if s.Snapshot() != previous {
			t.Errorf("%s: the same Secret again changed the Snapshot", description)
		}
	}
	step("a first certificate", objecttest.TLSSecret(t, objecttest.ECDSAKey(t)))
	step("a new one", objecttest.TLSSecret(t, objecttest.ECDSAKey(t)))
	step("none any more", nil)

	apply(t, s, true, policyOf("p", presentsClient))
	select {
	case <-s.SecretsChanged():
	default:
		t.Error("no notification that no Secret is to be read any more")
	}
	if got := s.Secrets(); len(got) > 0 {
		t.Errorf("want no Secrets to read, got %v", got)
	}
	s.SetSecret(name("client"), nil)
	if s.Snapshot().Edit().KeyPairs.Get(name("client")) != nil {
		t.Error("an unused key is kept")
	}
}

// presentingGateway returns a Gateway whose client certificate for backends is in a Secret.
func presentingGateway(secret string) string {
	return strings.Replace(gatewayOf("gw"), "gatewayClassName: envoy", "gatewayClassName: envoy, tls: {backend: {clientCertificateRef: "+secret+"}}", 1)
}

func TestGatewayCertificates(t *testing.T) {
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	secret, vault := types.NamespacedName{Namespace: "infra", Name: "client"}, types.NamespacedName{Namespace: "vault", Name: "client"}
	good := objecttest.TLSSecret(t, objecttest.ECDSAKey(t))
	grant := strings.NewReplacer("gateway.tailscale.com", "gateway.networking.k8s.io", "TailscaleRoutePolicy", "Gateway", "namespace: shop", "namespace: infra").Replace(vaultGrant)
	type said struct {
		Certificate     *ir.ClientCertificate
		Secrets         []types.NamespacedName
		KeyPair, Revise bool
	}
	fingerprint := parse.ParseSecret(secret, good, objecttest.SecretTime).Pair.Fingerprint()
	cases := map[string]struct {
		reason  string
		docs    []string
		secrets map[types.NamespacedName]ir.CertificateSecret
		want    said
	}{
		"None":  {reason: "A Gateway that names no Secret presents none.", docs: []string{gatewayOf("gw"), routeToWeb}, want: said{Revise: true}},
		"Known": {reason: "A known certificate should be presented.", docs: []string{presentingGateway("{name: client}"), routeToWeb}, secrets: map[types.NamespacedName]ir.CertificateSecret{secret: parse.ParseSecret(secret, good, objecttest.SecretTime)}, want: said{Certificate: &ir.ClientCertificate{Secret: secret, Fingerprint: fingerprint}, Secrets: []types.NamespacedName{secret}, KeyPair: true, Revise: true}},
		"Alone": {reason: "A Gateway without a route to one of our kinds needs no translation.", docs: []string{presentingGateway("{name: client}")}, secrets: map[types.NamespacedName]ir.CertificateSecret{secret: parse.ParseSecret(secret, good, objecttest.SecretTime)}, want: said{Certificate: &ir.ClientCertificate{Secret: secret, Fingerprint: fingerprint}, Secrets: []types.NamespacedName{secret}, KeyPair: true}},
		"Other": {
			reason: "A reference to another kind than Secret should be reported.", docs: []string{presentingGateway("{kind: Vault, group: example.com, name: client}"), routeToWeb},
			want: said{Certificate: &ir.ClientCertificate{Secret: secret, Reason: ir.ReasonInvalidCertificate, Problem: "spec.tls.backend.clientCertificateRef names no Secret"}, Revise: true},
		},
		"NotGranted": {
			reason: "A Secret of another namespace should not be read without a ReferenceGrant for Gateways.", docs: []string{presentingGateway("{namespace: vault, name: client}"), routeToWeb, vaultGrant},
			want: said{Certificate: &ir.ClientCertificate{Secret: vault, Reason: ir.ReasonNotPermitted, Problem: "No ReferenceGrant in namespace vault lets a Gateway of namespace infra name Secret client"}, Revise: true},
		},
		"Granted": {
			reason: "A ReferenceGrant for Gateways should permit the Secret.", docs: []string{presentingGateway("{namespace: vault, name: client}"), routeToWeb, grant}, secrets: map[types.NamespacedName]ir.CertificateSecret{vault: parse.ParseSecret(vault, good, objecttest.SecretTime)},
			want: said{Certificate: &ir.ClientCertificate{Secret: vault, Fingerprint: fingerprint}, Secrets: []types.NamespacedName{vault}, KeyPair: true, Revise: true},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := NewStore()
			for _, doc := range tc.docs {
				apply(t, s, false, doc)
			}
			previous := s.Snapshot().GatewayDigest(gw)
			for n, h := range tc.secrets {
				s.SetSecret(n, &h)
			}
			c := s.Snapshot().Certificates().Get(gw)
			got := said{Certificate: c, KeyPair: c != nil && s.Snapshot().Certificates().KeyPair(c) != nil, Revise: s.Snapshot().GatewayDigest(gw) != ""}
			if ns := s.Secrets(); len(ns) > 0 {
				got.Secrets = ns
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if updated := s.Snapshot().GatewayDigest(gw); got.Revise && got.KeyPair && updated == previous {
				t.Errorf("%s\nthe certificate did not change the digest of the Gateway", tc.reason)
			}
			for _, doc := range tc.docs {
				apply(t, s, true, doc)
			}
			if digests := maps.Collect(s.Snapshot().GatewayDigests()); len(digests)+s.Snapshot().Edit().Digests.Len()+len(s.Secrets()) > 0 {
				t.Errorf("%s\nafter all objects are deleted, want no digests and Secrets, got %v, %v", tc.reason, digests, s.Secrets())
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gateways

import (
	"context"
	"fmt"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

const (
	certificates = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: {name: certificates, namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  tls: {clientValidation: {caCertificateRefs: [{name: ca}]}}
`
	jwt = `
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: jwt, namespace: shop}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: app}]
  jwt: {providers: [{name: idp, remoteJWKS: {uri: https://idp.example.com/keys}}]}
`
)

// policyCRD returns the relevant part of the CRD of one of Envoy Gateway's policies.
func policyCRD(kind string) string {
	plural := strings.ToLower(strings.TrimSuffix(kind, "y")) + "ies"
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.gateway.envoyproxy.io}
spec:
  group: gateway.envoyproxy.io
  scope: Namespaced
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, singular: %[3]s}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, kind, strings.ToLower(kind))
}

func untyped(t *testing.T, manifest string) client.Object {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestReportsProtection checks how a report follows policies, starting before their CRDs are
// installed.
func TestReportsProtection(t *testing.T) {
	w := newEnvironment(t, false)
	w.start(t, Options{})
	w.create(t, objects(t, gateway, routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"), tailscaleGateway)...)
	expect := func(reason string, complete bool, protector string) {
		t.Helper()
		w.waitFor(t, func(ctx context.Context) error {
			r, err := w.report(ctx)
			if err != nil {
				return err
			}
			if len(r.Spec.Routes) != 1 || len(r.Spec.Routes[0].Backends) != 1 || r.Spec.PoliciesKnown != complete || r.Spec.Routes[0].Backends[0].ProtectedBy != protector {
				return errors.Errorf("%s Got report %+v", reason, r.Spec)
			}
			return nil
		})
	}
	for _, kind := range parse.PolicyKinds() {
		expect("Without a kind the policies are unknown.", false, "")
		if err := w.kube.Create(t.Context(), untyped(t, policyCRD(kind))); err != nil && !kerrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	expect("Once all kinds exist, the report has all policies, which are none.", true, "")
	w.waitFor(t, func(ctx context.Context) error { return w.kube.Create(ctx, untyped(t, certificates)) })
	expect("A new policy protects the backend.", true, "ClientTrafficPolicy shop/certificates")
	if err := w.kube.Delete(t.Context(), untyped(t, certificates)); err != nil {
		t.Fatal(err)
	}
	w.waitFor(t, func(ctx context.Context) error { return w.kube.Create(ctx, untyped(t, jwt)) })
	expect("A new policy protects the backend.", true, "SecurityPolicy shop/jwt")
	if err := w.kube.Delete(t.Context(), untyped(t, jwt)); err != nil {
		t.Fatal(err)
	}
	expect("A deleted policy no longer protects the backend.", true, "")
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gateways

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// securityPolicyCRD is the relevant part of Envoy Gateway's CRD.
	securityPolicyCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: securitypolicies.gateway.envoyproxy.io}
spec:
  group: gateway.envoyproxy.io
  scope: Namespaced
  names: {kind: SecurityPolicy, listKind: SecurityPolicyList, plural: securitypolicies, singular: securitypolicy}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
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

func untyped(t *testing.T, manifest string) client.Object {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestReportsProtection checks how a report follows SecurityPolicies, starting before their CRD
// is installed.
func TestReportsProtection(t *testing.T) {
	w := newEnvironment(t, false)
	w.start(t, Options{})
	w.create(t, objects(t, gateway, routeTo("HTTPRoute", "shop", "app", "{name: web, sectionName: http}", "True", "rules: [{backendRefs: [{name: app, port: 80}]}]"), tailscaleGateway)...)
	expect := func(reason string, known bool, by string) {
		t.Helper()
		w.waitFor(t, func(ctx context.Context) error {
			r, err := w.report(ctx)
			if err != nil {
				return err
			}
			if len(r.Spec.Routes) != 1 || len(r.Spec.Routes[0].Backends) != 1 || r.Spec.PoliciesKnown != known || r.Spec.Routes[0].Backends[0].ProtectedBy != by {
				return errors.Errorf("%s Got report %+v", reason, r.Spec)
			}
			return nil
		})
	}
	expect("Without the kind the policies are unknown.", false, "")
	if err := w.kube.Create(t.Context(), untyped(t, securityPolicyCRD)); err != nil {
		t.Fatal(err)
	}
	expect("Once the kind exists, the report has all policies, which are none.", true, "")
	w.waitFor(t, func(ctx context.Context) error { return w.kube.Create(ctx, untyped(t, jwt)) })
	expect("A new policy protects the backend.", true, "SecurityPolicy shop/jwt")
	if err := w.kube.Delete(t.Context(), untyped(t, jwt)); err != nil {
		t.Fatal(err)
	}
	expect("A deleted policy no longer protects the backend.", true, "")
}

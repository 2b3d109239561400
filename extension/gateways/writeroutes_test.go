// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
)

// TestPolicyFirst checks that no route to a backend with TLS exists without its BackendTLSPolicy.
func TestPolicyFirst(t *testing.T) {
	const policy = "BackendTLSPolicy"
	invalid := kerrors.NewInvalid(schema.GroupKind{Group: gwapiv1.GroupName, Kind: policy}, "x", nil)
	cases := map[string]struct {
		reason string
		err    error
		exists bool
		want   []string
		fails  bool
	}{
		"Written":     {reason: "The policy comes before the route.", want: []string{"create " + policy, "create HTTPRoute"}},
		"Unavailable": {reason: "A policy that cannot be written is tried again, and its route waits.", err: kerrors.NewServiceUnavailable("later"), want: []string{"create " + policy}, fails: true},
		"Invalid":     {reason: "A policy that is refused has no route.", err: invalid, want: []string{"create " + policy}},
		"TooLate":     {reason: "Nor does an existing route stay without it.", err: invalid, exists: true, want: []string{"create " + policy, "delete HTTPRoute"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inputs := inputOf(t, objects(t, gateway, joins(discovers("prod", "HTTPS", defaultEgress)), found("prod", "True", "svc-grafana"))...)
			desired := plan(inputs).routes
			v := &view{input: inputs}
			if tc.exists {
				v.Generated = []client.Object{routes.NewHTTPRoute(inputs.Object, desired[0])}
			}
			var got []string
			kube := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					kind := o.GetObjectKind().GroupVersionKind().Kind
					got = append(got, "create "+kind)
					if kind == policy {
						return tc.err
					}
					return nil
				},
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					got = append(got, "delete "+o.GetObjectKind().GroupVersionKind().Kind)
					return nil
				},
			})
			err := NewController(nil, kube, Options{}).writeRoutes(t.Context(), v, slices.Clone(desired))
			if (err != nil) != tc.fails {
				t.Errorf("%s writeRoutes(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

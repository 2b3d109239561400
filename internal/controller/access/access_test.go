// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

func TestAllowed(t *testing.T) {
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason  string
		allowed map[string]bool
		err     error
		want    bool
	}{
		"All":  {reason: "All verbs are allowed.", allowed: map[string]bool{"list": true, "watch": true}, want: true},
		"Some": {reason: "Some allowed verbs are not enough.", allowed: map[string]bool{"list": true}},
		"None": {reason: "No verb is allowed."},
		"Err":  {reason: "A review that fails is an error.", err: errBoom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					r, ok := o.(*authv1.SelfSubjectAccessReview)
					if a := r.Spec.ResourceAttributes; !ok || a.Namespace != "web" || a.Group != "apps" || a.Resource != "statefulsets" {
						t.Errorf("Create(...): want a review of StatefulSets, got %+v", o)
					}
					r.Status.Allowed = tc.allowed[r.Spec.ResourceAttributes.Verb]
					return tc.err
				},
			})
			got, err := Allowed(t.Context(), kube, "web", schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "list", "watch")
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" || got != tc.want {
				t.Errorf("\n%s\nAllowed(...): want %t, got %t; -want error, +got error:\n%s", tc.reason, tc.want, got, diff)
			}
		})
	}
}

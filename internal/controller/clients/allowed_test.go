// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestTailnetBesideCredentials(t *testing.T) {
	pc := config{kind: v1alpha1.ClusterProviderConfigKind, name: "home", spec: v1alpha1.ProviderConfigSpec{
		Credentials:       v1alpha1.Credentials{OAuthSecretRef: &xpv2.SecretReference{Namespace: "team", Name: "oauth"}},
		AllowedNamespaces: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromList, Names: []string{"apps"}},
	}}
	c := NewConnector(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), nil, permits.New(fake.NewClientBuilder().Build(), "system"))
	tailnet := func(namespace string) resource.ModernManaged {
		return &v1alpha1.Tailnet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	}
	for name, cr := range map[string]v1alpha1.Credentials{
		"OAuthClient":      pc.spec.Credentials,
		"APIKey":           apiKeyRef("team", ""),
		"WorkloadIdentity": workload(&v1alpha1.ServiceAccountReference{Namespace: "team", Name: "gateway"}),
	} {
		t.Run(name, func(t *testing.T) {
			pc := pc
			pc.spec.Credentials = cr
			if err := c.allowed(t.Context(), pc, tailnet("team")); err != nil {
				t.Errorf("allowed(...) the Tailnet beside the credentials: %v", err)
			}
			if err := c.allowed(t.Context(), pc, tailnet("other")); err == nil {
				t.Error("allowed(...) a Tailnet elsewhere: want an error")
			}
			if err := c.allowed(t.Context(), pc, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}); err == nil {
				t.Error("allowed(...) another kind beside the credentials: want an error")
			}
		})
	}
	pc.spec.Credentials = workload(nil)
	if err := c.allowed(t.Context(), pc, tailnet("team")); err == nil {
		t.Error("allowed(...) a Tailnet while the provider's own service account logs in: want an error")
	}
}

// reviewer answers who asks what it may do, and counts how often it is asked.
func reviewer(may bool, asked *int) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, kube client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		r, ok := o.(*authorizationv1.SelfSubjectAccessReview)
		if !ok {
			return kube.Create(ctx, o, opts...)
		}
		*asked++
		r.Status.Allowed = may
		return nil
	}}
}

func TestAllowedByLabels(t *testing.T) {
	labelled := func(labels map[string]string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps", Labels: labels}}
	}
	shop := map[string]string{"team": "shop"}
	cases := map[string]struct {
		reason    string
		selector  *metav1.LabelSelector
		namespace client.Object
		forbidden bool
		deleted   bool
		permitted bool
		want      xpv2.ConditionReason
		err       string
	}{
		"Match":     {reason: "A namespace with the labels may use the config.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(shop)},
		"NoMatch":   {reason: "Another may not.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(nil), want: meta.ReasonNamespaceNotAllowed, err: `may not be used in namespace "apps"`},
		"Deleted":   {reason: "What was never allowed has nothing to clean up.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(nil), deleted: true, err: "never was"},
		"Once":      {reason: "What was made while it was allowed can be cleaned up.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(nil), deleted: true, permitted: true},
		"Blind":     {reason: "While labels cannot be read nothing is left behind for good.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(nil), deleted: true, forbidden: true, want: meta.ReasonNamespaceNotAllowed, err: "cluster/manifests/rbac.yaml"},
		"Invalid":   {reason: "A selector that cannot be read allows none.", selector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}, namespace: labelled(shop), want: meta.ReasonInvalidSelector, err: "spec.allowedNamespaces.selector"},
		"Forbidden": {reason: "While labels cannot be read nobody may, and it is said what to mend.", selector: &metav1.LabelSelector{}, namespace: labelled(shop), forbidden: true, want: meta.ReasonNamespaceNotAllowed, err: "cluster/manifests/rbac.yaml"},
		"Gone":      {reason: "A namespace that is not known may not.", selector: &metav1.LabelSelector{}, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, err: `cannot get namespace "apps"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.namespace).WithInterceptorFuncs(reviewer(!tc.forbidden, &asked)).Build()
			record := permits.New(kube, "system")
			if tc.permitted {
				if err := record.Add(t.Context(), "d", permits.Permit{Kind: "Discovery", Namespace: "apps", Config: "home"}); err != nil {
					t.Fatal(err)
				}
			}
			c := NewConnector(kube, nil, record)
			pc := config{uid: "home", kind: v1alpha1.ClusterProviderConfigKind, name: "home", spec: v1alpha1.ProviderConfigSpec{
				AllowedNamespaces: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSelector, Selector: tc.selector},
			}}
			mg := &v1alpha1.Discovery{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", UID: "d"}}
			if tc.deleted {
				now := metav1.Now()
				mg.DeletionTimestamp = &now
			}
			for range 3 {
				err := c.allowed(t.Context(), pc, mg)
				if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
					t.Fatalf("\n%s\nallowed(...): want %q, got %v", tc.reason, tc.err, err)
				}
				var ce *CredentialsError
				if errors.As(err, &ce) && ce.Reason != tc.want {
					t.Errorf("\n%s\nallowed(...): want reason %q, got %q", tc.reason, tc.want, ce.Reason)
				}
			}
			// Once for each verb: what is allowed is asked no more.
			if !tc.forbidden && asked > 2 {
				t.Errorf("\n%s\nit was asked %d times what the provider may do", tc.reason, asked)
			}
		})
	}
}

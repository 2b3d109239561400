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
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestTailnetBesideCredentials(t *testing.T) {
	pc := config{kind: v1alpha1.ClusterProviderConfigKind, name: "home", spec: v1alpha1.ProviderConfigSpec{
		Credentials:       v1alpha1.Credentials{OAuthSecretRef: &xpv2.SecretReference{Namespace: "team", Name: "oauth"}},
		AllowedNamespaces: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromList, Names: []string{"apps"}},
	}}
	c := NewConnector(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), nil, permits.New(fake.NewClientBuilder().Build(), "system"), nil)
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
			if _, err := c.allowed(t.Context(), pc, tailnet("team")); err != nil {
				t.Errorf("allowed(...) of the Tailnet in the credentials' namespace: %v", err)
			}
			if _, err := c.allowed(t.Context(), pc, tailnet("other")); err == nil {
				t.Error("allowed(...) a Tailnet elsewhere: want an error")
			}
			if _, err := c.allowed(t.Context(), pc, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}); err == nil {
				t.Error("allowed(...) another kind beside the credentials: want an error")
			}
		})
	}
	pc.spec.Credentials = workload(nil)
	if _, err := c.allowed(t.Context(), pc, tailnet("team")); err == nil {
		t.Error("allowed(...) a Tailnet while the provider's own service account logs in: want an error")
	}
}

// reviewer answers the provider's access reviews, and counts them.
func reviewer(may bool, reviews *int) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, kube client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		r, ok := o.(*authorizationv1.SelfSubjectAccessReview)
		if !ok {
			return kube.Create(ctx, o, opts...)
		}
		*reviews++
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
		"NoMatch":   {reason: "Another namespace may not use it.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(nil), want: meta.ReasonNamespaceNotAllowed, err: `may not be used in namespace "apps"`},
		"Deleted":   {reason: "A resource that was never allowed has nothing to clean up.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(nil), deleted: true, err: "never was"},
		"Once":      {reason: "A resource that was allowed once can clean up.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(nil), deleted: true, permitted: true},
		"Blind":     {reason: "While labels cannot be read, a deletion waits instead of leaving anything behind.", selector: &metav1.LabelSelector{MatchLabels: shop}, namespace: labelled(nil), deleted: true, forbidden: true, want: meta.ReasonNamespaceNotAllowed, err: "the chart tailscale-gateway"},
		"Invalid":   {reason: "An invalid selector allows no namespace.", selector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}, namespace: labelled(shop), want: meta.ReasonInvalidSelector, err: "spec.allowedNamespaces.selector"},
		"Forbidden": {reason: "Without permission to read labels every namespace is refused, and the error names the fix.", selector: &metav1.LabelSelector{}, namespace: labelled(shop), forbidden: true, want: meta.ReasonNamespaceNotAllowed, err: "the chart tailscale-gateway"},
		"Gone":      {reason: "An unknown namespace is refused.", selector: &metav1.LabelSelector{}, namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, err: `cannot get namespace "apps"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reviews := 0
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.namespace).WithInterceptorFuncs(reviewer(!tc.forbidden, &reviews)).Build()
			record := permits.New(kube, "system")
			if tc.permitted {
				if err := record.Add(t.Context(), "d", permits.Permit{Kind: "Discovery", Namespace: "apps", Config: "home"}); err != nil {
					t.Fatal(err)
				}
			}
			c := NewConnector(kube, nil, record, nil)
			pc := config{uid: "home", kind: v1alpha1.ClusterProviderConfigKind, name: "home", spec: v1alpha1.ProviderConfigSpec{
				AllowedNamespaces: &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromSelector, Selector: tc.selector},
			}}
			mg := &v1alpha1.Discovery{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", UID: "d"}}
			if tc.deleted {
				at := metav1.Now()
				mg.DeletionTimestamp = &at
			}
			for range 3 {
				_, err := c.allowed(t.Context(), pc, mg)
				if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
					t.Fatalf("\n%s\nallowed(...): want %q, got %v", tc.reason, tc.err, err)
				}
				var ce *CredentialsError
				if errors.As(err, &ce) && ce.Reason != tc.want {
					t.Errorf("\n%s\nallowed(...): want reason %q, got %q", tc.reason, tc.want, ce.Reason)
				}
			}
			// One review for each verb: a positive answer is not requested again.
			if !tc.forbidden && reviews > 2 {
				t.Errorf("\n%s\ngot %d access reviews", tc.reason, reviews)
			}
		})
	}
}

// TestGrants shows what a grant allows a resource, and what it still allows after the grant
// changes.
func TestGrants(t *testing.T) {
	shop := []v1alpha1.NamespaceGrant{{Names: []string{"apps"}, Tags: []v1alpha1.Tag{"tag:shop"}, Services: []v1alpha1.ServicePattern{"shop-*"}}}
	vip := func(name string) resource.ModernManaged {
		return &v1alpha1.VIPService{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", UID: "u"},
			Spec:       v1alpha1.VIPServiceSpec{ForProvider: v1alpha1.VIPServiceParameters{Name: v1alpha1.ServiceName(name)}},
		}
	}
	machine := func(tags ...v1alpha1.Tag) resource.ModernManaged {
		return &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", UID: "u"},
			Spec:       v1alpha1.MachineSpec{ForProvider: v1alpha1.MachineParameters{Tags: tags}},
		}
	}
	key := func(id string) resource.ModernManaged {
		k := &v1alpha1.AuthKey{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", UID: "u"}}
		xpmeta.SetExternalName(k, id)
		return k
	}
	all := func(t *testing.T, g tailscale.Guard) {
		t.Helper()
		if g != nil {
			t.Errorf("want a client without a guard, got %v", g)
		}
	}
	cases := map[string]struct {
		reason string
		grants []v1alpha1.NamespaceGrant
		// previous is the resource that was allowed before its deletion. Nil means that the resource
		// is not being deleted.
		previous     resource.ModernManaged
		mg           resource.ModernManaged
		want         xpv2.ConditionReason
		neverAllowed bool
		err          string
		guard        func(t *testing.T, g tailscale.Guard)
	}{
		"Whole":  {reason: "An entry without limits grants everything that the credential may do.", grants: []v1alpha1.NamespaceGrant{{Names: []string{"apps"}}}, mg: vip("svc:any"), guard: all},
		"Nobody": {reason: "A namespace without an entry may do nothing.", grants: []v1alpha1.NamespaceGrant{{Names: []string{"other"}}}, mg: vip("svc:any"), want: meta.ReasonNamespaceNotAllowed, err: "may not be used"},
		"Within": {
			reason: "A client writes only what is granted.", grants: shop, mg: vip("svc:shop-web"),
			guard: func(t *testing.T, g tailscale.Guard) {
				t.Helper()
				refuses(t, g, false, func() error { return g.Service("svc:shop-web") })
				refuses(t, g, true, func() error { return g.Service("svc:blog") })
				refuses(t, g, true, func() error { return g.Tags([]string{"tag:admin"}) })
				refuses(t, g, true, func() error { return g.Key(nil) })
				refuses(t, g, true, func() error { return g.Key([]string{"tag:admin"}) })
				refuses(t, g, false, func() error { return g.Key([]string{"tag:k8s", "tag:shop"}) })
				refuses(t, g, false, func() error { return g.Device("n", []string{"tag:shop"}) })
				refuses(t, g, true, func() error { return g.Device("n", []string{"tag:k8s"}) })
				refuses(t, g, true, func() error { return g.Device("n", nil) })
				refuses(t, g, false, func() error { return g.Domain("example.com") })
				// The cluster's own service next to a shared one.
				refuses(t, g, false, func() error { return g.Service(registry.RecordName("svc:shop-web", "home")) })
				refuses(t, g, true, func() error { return g.Service(registry.RecordName("svc:blog", "home")) })
			},
		},
		"Machine": {
			reason: "A proxy may only have the tailnet's tags.", grants: shop, mg: machine(),
			guard: func(t *testing.T, g tailscale.Guard) {
				t.Helper()
				refuses(t, g, false, func() error { return g.Device("n", []string{"tag:k8s"}) })
				refuses(t, g, true, func() error { return g.Device("n", []string{"tag:other", "tag:k8s"}) })
				refuses(t, g, true, func() error { return g.Device("n", nil) })
			},
		},
		"Beyond":       {reason: "A service outside the grant is refused, and the error names the fields of the resource and of the grant.", grants: shop, mg: vip("svc:blog"), want: meta.ReasonNotGranted, err: "spec.forProvider.name: the tailnet does not grant service \"svc:blog\""},
		"Tag":          {reason: "Tags outside the grant are refused.", grants: shop, mg: machine("tag:admin"), want: meta.ReasonNotGranted, err: "spec.allowedNamespaces.grants[0].tags"},
		"Withheld":     {reason: "Kinds outside the grant are refused.", grants: shop, mg: &v1alpha1.PolicyFragment{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", UID: "u"}}, want: meta.ReasonNotGranted, err: "spec.allowedNamespaces.grants[0].kinds"},
		"NeverDeleted": {reason: "A resource that was never allowed deletes nothing.", grants: shop, previous: machine(), mg: vip("svc:blog"), neverAllowed: true, err: "never was"},
		"MovedDeleted": {reason: "A resource with another allowed spec deletes nothing.", grants: shop, previous: vip("svc:shop-web"), mg: vip("svc:blog"), neverAllowed: true, err: "never was"},
		"OtherKeyDeleted": {
			reason: "An AuthKey that names another key revokes nothing.", grants: []v1alpha1.NamespaceGrant{{Names: []string{"other"}}},
			previous: key("k1"), mg: key("victim"), neverAllowed: true, err: "never was",
		},
		"WithinDeleted": {reason: "A resource within the grant cleans up.", grants: shop, previous: vip("svc:shop-a"), mg: vip("svc:shop-b"), guard: func(t *testing.T, g tailscale.Guard) {
			t.Helper()
			refuses(t, g, false, func() error { return g.Service("svc:shop-b") })
			refuses(t, g, true, func() error { return g.Service("svc:blog") })
		}},
		"NarrowedDeleted": {reason: "A resource that an earlier grant allowed cleans up what it made.", grants: shop, previous: vip("svc:blog"), mg: vip("svc:blog"), guard: func(t *testing.T, g tailscale.Guard) {
			t.Helper()
			refuses(t, g, false, func() error { return g.Service("svc:blog") })
			refuses(t, g, true, func() error { return g.Service("svc:wiki") })
		}},
		"LostDeleted": {reason: "A resource without a grant cleans up what it made under an earlier grant.", grants: []v1alpha1.NamespaceGrant{{Names: []string{"other"}}}, previous: machine("tag:shop"), mg: machine("tag:shop"), guard: func(t *testing.T, g tailscale.Guard) {
			t.Helper()
			refuses(t, g, false, func() error { return g.Device("n", []string{"tag:shop", "tag:k8s"}) })
			refuses(t, g, true, func() error { return g.Device("n", []string{"tag:other"}) })
			refuses(t, g, true, func() error { return g.Service("svc:any") })
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).Build()
			c := NewConnector(kube, nil, permits.New(kube, "system"), nil)
			pc := config{uid: "home", kind: v1alpha1.ClusterProviderConfigKind, name: "home", spec: v1alpha1.ProviderConfigSpec{Tags: []v1alpha1.Tag{"tag:k8s"}}}
			if tc.previous != nil {
				// With the config as it was before.
				if _, err := c.allowed(t.Context(), pc, tc.previous); err != nil {
					t.Fatal(err)
				}
				at := metav1.Now()
				tc.mg.SetDeletionTimestamp(&at)
			}
			pc.spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromGrants, Grants: tc.grants}
			g, err := c.allowed(t.Context(), pc, tc.mg)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("\n%s\nallowed(...): want %q, got %v", tc.reason, tc.err, err)
			}
			var ce *CredentialsError
			if errors.As(err, &ce); tc.want != "" && (ce == nil || ce.Reason != tc.want || !ce.shows(tc.mg)) {
				t.Errorf("\n%s\nallowed(...): want reason %q in Ready, got %v", tc.reason, tc.want, err)
			}
			var neverAllowed *NeverAllowedError
			if errors.As(err, &neverAllowed) != tc.neverAllowed {
				t.Errorf("\n%s\nallowed(...): want a NeverAllowedError: %t, got %v", tc.reason, tc.neverAllowed, err)
			}
			if tc.err == "" {
				tc.guard(t, g)
			}
		})
	}
}

// TestFacts shows what a resource may clean up whose namespace lost its permission: what it had, or
// wanted, when it was allowed.
func TestFacts(t *testing.T) {
	cases := map[string]struct {
		reason       string
		previous     []string
		facts        []string
		neverAllowed bool
	}{
		"Same":   {reason: "A resource may clean up what it had.", previous: []string{"nameservers 192.0.2.1", "searchPaths a.example.com"}, facts: []string{"searchPaths a.example.com", "nameservers 192.0.2.1"}},
		"Fewer":  {reason: "It may have cleaned up a part of that already.", previous: []string{"nameservers 192.0.2.1", "searchPaths a.example.com"}, facts: []string{"nameservers 192.0.2.1"}},
		"None":   {reason: "It may have nothing left.", previous: []string{"nameservers 192.0.2.1"}},
		"Forged": {reason: "Something else in its annotations was written by a user.", previous: []string{"nameservers 192.0.2.1"}, facts: []string{"nameservers 192.0.2.1", "nameservers 192.0.2.2"}, neverAllowed: true},
		"Never":  {reason: "A resource that had nothing has nothing to clean up.", facts: []string{"nameservers 192.0.2.2"}, neverAllowed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).Build()
			facts := tc.previous
			c := NewConnector(kube, nil, permits.New(kube, "system"), nil).Recording(func(resource.ModernManaged) ([]string, error) { return facts, nil })
			pc := config{uid: "home", kind: v1alpha1.ClusterProviderConfigKind, name: "home"}
			mg := &v1alpha1.DNS{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", UID: "u"}}
			if _, err := c.allowed(t.Context(), pc, mg); err != nil {
				t.Fatal(err)
			}
			pc.spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromList, Names: []string{"other"}}
			at := metav1.Now()
			mg.DeletionTimestamp = &at
			facts = tc.facts
			_, err := c.allowed(t.Context(), pc, mg)
			var neverAllowed *NeverAllowedError
			if errors.As(err, &neverAllowed) != tc.neverAllowed || err != nil && !tc.neverAllowed {
				t.Errorf("\n%s\nallowed(...): want a NeverAllowedError: %t, got %v", tc.reason, tc.neverAllowed, err)
			}
		})
	}
}

// refuses checks whether a guard refuses a call.
func refuses(t *testing.T, g tailscale.Guard, want bool, fn func() error) {
	t.Helper()
	if g == nil {
		t.Fatal("want a guard")
	}
	if err := fn(); (err != nil) != want {
		t.Errorf("want a refusal: %t, got %v", want, err)
	}
}

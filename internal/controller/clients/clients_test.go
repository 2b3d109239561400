// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func objects(data map[string][]byte) []client.Object {
	spec := v1alpha1.ProviderConfigSpec{
		APIURL: "http://localhost", Tailnet: "-", Tags: []v1alpha1.Tag{"tag:k8s"},
		Credentials: v1alpha1.Credentials{OAuthSecretRef: xpv2.SecretReference{Namespace: "team", Name: "oauth"}},
	}
	return []client.Object{
		&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "home", UID: "cluster-uid"}, Spec: spec},
		&v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "home", UID: "uid"}, Spec: spec},
		&v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "thief", UID: "thief"}, Spec: spec},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "oauth"}, Data: data},
	}
}

func TestConnect(t *testing.T) {
	good := map[string][]byte{meta.SecretKeyClientID: []byte("id\n"), meta.SecretKeyClientSecret: []byte("hush")}
	cases := map[string]struct {
		reason    string
		objects   []client.Object
		namespace string
		kind      string
		name      string
		deleted   bool
		clusterID string
		err       string
		auth      xpv2.ConditionReason
		protected bool
		usages    int
	}{
		"Cluster": {
			reason: "A cluster config serves any namespace; its Secret is protected and its use recorded.", objects: objects(good),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", clusterID: "cluster-uid", protected: true, usages: 1,
		},
		"Namespaced": {
			reason: "A namespaced config serves its own namespace.", objects: objects(good),
			namespace: "team", kind: v1alpha1.ProviderConfigKind, name: "home", clusterID: "uid", protected: true, usages: 1,
		},
		"Thief": {
			reason: "A namespaced config must not use another namespace's Secret.", objects: objects(good),
			namespace: "apps", kind: v1alpha1.ProviderConfigKind, name: "thief", err: "own namespace", usages: 1,
		},
		"Deleted": {
			reason: "A resource under deletion makes no usage and protects nothing anew.", objects: objects(good),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", deleted: true, clusterID: "cluster-uid",
		},
		"NoConfig": {
			reason: "A config that is gone is named.", objects: objects(good),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "gone", err: `cannot get ClusterProviderConfig "gone"`, usages: 1,
		},
		"NoSecret": {
			reason: "A Secret that is missing is named.", objects: objects(nil)[:3],
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", err: "team/oauth", auth: meta.ReasonSecretNotFound, usages: 1,
		},
		"IncompleteSecret": {
			reason: "A key that is missing is named, and no value.", objects: objects(map[string][]byte{meta.SecretKeyClientID: []byte("hush")}),
			namespace: "apps", kind: v1alpha1.ClusterProviderConfigKind, name: "home", err: "lacks client_secret", auth: meta.ReasonSecretIncomplete, usages: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(s); err != nil {
					t.Fatal(err)
				}
			}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(tc.objects...).Build()
			mg := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "m", UID: "m"}}
			mg.SetGroupVersionKind(v1alpha1.MachineGroupVersionKind)
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: tc.kind, Name: tc.name})
			if tc.deleted {
				now := metav1.Now()
				mg.DeletionTimestamp = &now
			}
			c := NewConnector(kube, tailscale.NewPool(tailscale.Options{Rate: 1, Burst: 1, Metrics: tailscale.NewMetrics()}))
			got, err := c.Connect(t.Context(), mg)
			switch {
			case tc.err == "" && err != nil:
				t.Fatalf("\n%s\nConnect(...): %v", tc.reason, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Fatalf("\n%s\nConnect(...): want %q in the error, got: %v", tc.reason, tc.err, err)
			case err == nil:
				if diff := cmp.Diff(tc.clusterID, got.ClusterID); diff != "" || len(got.Tags) != 1 {
					t.Errorf("\n%s\nConnect(...): -want, +got:\n%s", tc.reason, diff)
				}
			case strings.Contains(err.Error(), "hush"):
				t.Errorf("\n%s\nConnect(...): the error has a secret", tc.reason)
			}
			if tc.auth != "" {
				cond, ok := Authenticated(err)
				if !ok || cond.Reason != tc.auth {
					t.Errorf("\n%s\nAuthenticated(...): want %s, got %v", tc.reason, tc.auth, cond)
				}
			}
			checkMarks(t, kube, tc.reason, tc.protected, tc.usages)
		})
	}
}

func checkMarks(t *testing.T, kube client.Client, reason string, protected bool, usages int) {
	t.Helper()
	l := &corev1.SecretList{}
	if err := kube.List(t.Context(), l, client.MatchingLabels{meta.LabelSecretType: SecretTypeCredentials}); err != nil {
		t.Fatal(err)
	}
	if got := len(l.Items) == 1 && len(l.Items[0].GetFinalizers()) == 1; got != protected {
		t.Errorf("\n%s\nwant Secret protected: %t, got %t", reason, protected, got)
	}
	ul := &v1alpha1.ProviderConfigUsageList{}
	if err := kube.List(t.Context(), ul); err != nil {
		t.Fatal(err)
	}
	if len(ul.Items) != usages {
		t.Errorf("\n%s\nwant %d usages, got %d", reason, usages, len(ul.Items))
	}
}

func TestTrackInTerminatingNamespace(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	data := map[string][]byte{meta.SecretKeyClientID: []byte("id"), meta.SecretKeyClientSecret: []byte("hush")}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(objects(data)...).Build()
	c := NewConnector(kube, tailscale.NewPool(tailscale.Options{Rate: 1, Burst: 1, Metrics: tailscale.NewMetrics()}))
	c.usage = resource.ModernTrackerFn(func(context.Context, resource.ModernManaged) error {
		return errors.Wrap(terminating(), "cannot apply usage")
	})
	mg := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "m"}}
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "home"})
	if _, err := c.Connect(t.Context(), mg); err != nil {
		t.Errorf("Connect(...): a namespace that goes away must not stop a resource: %v", err)
	}
}

// terminating is what the API server answers to a create in a namespace that is
// being deleted.
func terminating() error {
	err := kerrors.NewForbidden(schema.GroupResource{Resource: "providerconfigusages"}, "m", errors.New("namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

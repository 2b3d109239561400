// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func spec() v1alpha1.ProviderConfigSpec {
	return v1alpha1.ProviderConfigSpec{Credentials: v1alpha1.Credentials{OAuthSecretRef: &xpv2.SecretReference{Namespace: "team", Name: "oauth"}}}
}

func clusterConfig(name string, finalizers ...string) *v1alpha1.ClusterProviderConfig {
	return &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Finalizers: finalizers}, Spec: spec()}
}

func with(pc *v1alpha1.ClusterProviderConfig, cr v1alpha1.Credentials) *v1alpha1.ClusterProviderConfig {
	pc.Spec.Credentials = cr
	return pc
}

func apiKey() v1alpha1.Credentials {
	return v1alpha1.Credentials{APIKeySecretRef: &v1alpha1.APIKeySecretReference{SecretReference: xpv2.SecretReference{Namespace: "team", Name: "oauth"}}}
}

func workload() v1alpha1.Credentials {
	return v1alpha1.Credentials{WorkloadIdentity: &v1alpha1.WorkloadIdentity{ClientID: "kWork", Audience: "aud"}}
}

func oauth() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "oauth", Finalizers: []string{clients.Finalizer}}}
}

// user returns a managed resource that refers to a ClusterProviderConfig.
func user[T resource.ModernManaged](mg T, config string) T {
	mg.SetNamespace("apps")
	mg.SetName("user")
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: config})
	return mg
}

// userKinds returns the kinds of users in tests.
func userKinds() []kinds.User {
	return []kinds.User{
		{List: func() resource.ManagedList { return &v1alpha1.TailnetList{} }},
		{List: func() resource.ManagedList { return &v1alpha1.MachineList{} }, CleansUp: true},
		{List: func() resource.ManagedList { return &v1alpha1.VIPServiceList{} }, CleansUp: true},
	}
}

func TestReconcile(t *testing.T) {
	cases := map[string]struct {
		reason    string
		objects   []client.Object
		deleted   []client.Object
		config    bool // Whether the config still exists.
		protected bool // Whether the Secret still exists, with our finalizer.
	}{
		"Protects": {
			reason:    "A config gets a finalizer.",
			objects:   []client.Object{clusterConfig("a"), oauth(), user(&v1alpha1.Machine{}, "a"), user(&v1alpha1.VIPService{}, "other")},
			config:    true,
			protected: true,
		},
		"ConfigInUse": {
			reason:    "A config that is deleted stays while a resource refers to it.",
			objects:   []client.Object{clusterConfig("a", finalizer), oauth(), user(&v1alpha1.VIPService{}, "a")},
			deleted:   []client.Object{clusterConfig("a")},
			config:    true,
			protected: true,
		},
		"ConfigUnused": {
			reason:  "An unused config is deleted, and its Secret is released.",
			objects: []client.Object{clusterConfig("a", finalizer), oauth()},
			deleted: []client.Object{clusterConfig("a")},
		},
		"SecretInUse": {
			reason:    "A Secret that is deleted stays while a machine must be cleaned up with it.",
			objects:   []client.Object{clusterConfig("a", finalizer), oauth(), user(&v1alpha1.Machine{}, "a")},
			deleted:   []client.Object{oauth()},
			config:    true,
			protected: true,
		},
		"SecretNotNeeded": {
			reason:  "The deletion of a Tailnet needs no Secret, so it keeps none.",
			objects: []client.Object{clusterConfig("a", finalizer), oauth(), user(&v1alpha1.Tailnet{}, "a")},
			deleted: []client.Object{oauth()},
			config:  true,
		},
		"SecretNeededByAnother": {
			reason:    "A Secret that is deleted stays while another config's machine needs it.",
			objects:   []client.Object{clusterConfig("a", finalizer), clusterConfig("b", finalizer), oauth(), user(&v1alpha1.Machine{}, "b")},
			deleted:   []client.Object{oauth()},
			config:    true,
			protected: true,
		},
		"APIKeyInUse": {
			reason:    "An API key's Secret that is deleted stays while a machine must be cleaned up with it.",
			objects:   []client.Object{with(clusterConfig("a", finalizer), apiKey()), oauth(), user(&v1alpha1.Machine{}, "a")},
			deleted:   []client.Object{oauth()},
			config:    true,
			protected: true,
		},
		"APIKeyUnused": {
			reason:  "An unused config is deleted, and its API key's Secret is released.",
			objects: []client.Object{with(clusterConfig("a", finalizer), apiKey()), oauth()},
			deleted: []client.Object{clusterConfig("a")},
		},
		"WorkloadInUse": {
			reason:    "A config without a Secret stays while a resource refers to it.",
			objects:   []client.Object{with(clusterConfig("a", finalizer), workload()), oauth(), user(&v1alpha1.Machine{}, "a")},
			deleted:   []client.Object{clusterConfig("a")},
			config:    true,
			protected: true,
		},
		"WorkloadUnused": {
			reason:    "An unused config without a Secret is deleted, and no Secret is changed.",
			objects:   []client.Object{with(clusterConfig("a", finalizer), workload()), oauth()},
			deleted:   []client.Object{clusterConfig("a")},
			protected: true,
		},
		"SecretOfAnotherConfig": {
			reason:    "A Secret that another config names stays protected when this config is deleted.",
			objects:   []client.Object{clusterConfig("a", finalizer), clusterConfig("b", finalizer), oauth()},
			deleted:   []client.Object{clusterConfig("a")},
			protected: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(s); err != nil {
					t.Fatal(err)
				}
			}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(tc.objects...).WithStatusSubresource(&v1alpha1.ClusterProviderConfig{}).Build()
			for _, o := range tc.deleted {
				if err := kube.Delete(ctx, o); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{
				kube: kube, kind: v1alpha1.ClusterProviderConfigKind, kinds: userKinds(),
				pool: tailscale.NewPool(tailscale.Options{Metrics: tailscale.NewMetrics()}),
				log:  logging.NewNopLogger(), record: event.NewNopRecorder(),
			}
			if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}); err != nil {
				t.Fatalf("\n%s\nReconcile(...): %v", tc.reason, err)
			}
			pc := &v1alpha1.ClusterProviderConfig{}
			err := kube.Get(ctx, types.NamespacedName{Name: "a"}, pc)
			if kerrors.IsNotFound(err) == tc.config {
				t.Errorf("\n%s\nwant config: %t, got: %v", tc.reason, tc.config, err)
			}
			if terminating := pc.GetCondition(providerconfig.TypeTerminating).Status == corev1.ConditionTrue; terminating != (tc.config && pc.GetDeletionTimestamp() != nil) {
				t.Errorf("\n%s\nTerminating: got %t", tc.reason, terminating)
			}
			secret := oauth()
			secret.Finalizers = nil
			err = kube.Get(ctx, client.ObjectKeyFromObject(secret), secret)
			if got := err == nil && len(secret.GetFinalizers()) == 1; got != tc.protected {
				t.Errorf("\n%s\nwant Secret protected: %t, got %t", tc.reason, tc.protected, got)
			}
		})
	}
}

// TestCount counts the lists that a reconcile makes of the objects of all kinds.
func TestCount(t *testing.T) {
	cases := map[string]struct {
		reason  string
		deleted client.Object
		lists   int
	}{
		"AtRest":        {reason: "While nothing is being deleted, nothing is counted."},
		"ConfigDeleted": {reason: "The users of a config that is being deleted are counted once.", deleted: clusterConfig("a"), lists: len(userKinds())},
		"SecretDeleted": {reason: "The users of a Secret that is being deleted are counted.", deleted: oauth(), lists: len(userKinds())},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(s); err != nil {
					t.Fatal(err)
				}
			}
			lists := 0
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(clusterConfig("a", finalizer), oauth(), user(&v1alpha1.Machine{}, "a")).
				WithStatusSubresource(&v1alpha1.ClusterProviderConfig{}).
				WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
					if _, ok := l.(resource.ManagedList); ok {
						lists++
					}
					return c.List(ctx, l, opts...)
				}}).Build()
			if tc.deleted != nil {
				if err := kube.Delete(t.Context(), tc.deleted); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{kube: kube, kind: v1alpha1.ClusterProviderConfigKind, kinds: userKinds(), log: logging.NewNopLogger(), record: event.NewNopRecorder()}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}); err != nil {
				t.Fatal(err)
			}
			if lists != tc.lists {
				t.Errorf("\n%s\nReconcile(...): want %d lists, got %d", tc.reason, tc.lists, lists)
			}
		})
	}
}

func TestUsersChanged(t *testing.T) {
	old := user(&v1alpha1.Machine{}, "a")
	changed := old.DeepCopy()
	changed.SetGeneration(2)
	cases := map[string]struct {
		reason  string
		updated client.Object
		want    bool
	}{
		"Spec":   {reason: "A user with another spec is the user of the same config.", updated: changed},
		"Config": {reason: "A user that refers to another config concerns both.", updated: user(&v1alpha1.Machine{}, "b"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := usersChanged().Update(ctrlevent.UpdateEvent{ObjectOld: old, ObjectNew: tc.updated}); got != tc.want {
				t.Errorf("\n%s\nUpdate(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// TestRotated changes the Secret that a config names.
func TestRotated(t *testing.T) {
	other := v1alpha1.Credentials{OAuthSecretRef: &xpv2.SecretReference{Namespace: "team", Name: "new"}}
	local := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "l", UID: "l"}, Spec: spec()}
	cases := map[string]struct {
		reason    string
		configs   []client.Object
		protected bool
	}{
		"Rotated":     {reason: "A Secret that no config names is released.", configs: []client.Object{with(clusterConfig("a"), other)}},
		"Workload":    {reason: "A Secret whose config now logs in without a Secret is released.", configs: []client.Object{with(clusterConfig("a"), workload())}},
		"ConfigGone":  {reason: "A Secret whose config was deleted by force is released."},
		"StillNamed":  {reason: "A Secret that its config names stays.", configs: []client.Object{clusterConfig("a")}, protected: true},
		"AnotherName": {reason: "A Secret that another config names stays.", configs: []client.Object{with(clusterConfig("a"), other), local}, protected: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(s); err != nil {
					t.Fatal(err)
				}
			}
			secret := oauth()
			secret.Labels = map[string]string{meta.LabelSecretType: clients.SecretTypeCredentials, "mine": "true"}
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(append(tc.configs, secret)...).Build()
			key := types.NamespacedName{Namespace: "team", Name: "oauth"}
			for range 2 {
				if _, err := (&secretReconciler{kube: kube}).Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			got := &corev1.Secret{}
			if err := kube.Get(t.Context(), key, got); err != nil {
				t.Fatal(err)
			}
			if ok := controllerutil.ContainsFinalizer(got, clients.Finalizer); ok != tc.protected || (got.Labels[meta.LabelSecretType] != "") != tc.protected || got.Labels["mine"] != "true" {
				t.Errorf("\n%s\nfinalizers %v, labels %v", tc.reason, got.Finalizers, got.Labels)
			}
		})
	}
	if _, err := (&secretReconciler{kube: fake.NewClientBuilder().Build()}).Reconcile(t.Context(), reconcile.Request{}); err != nil && !kerrors.IsNotFound(err) {
		t.Errorf("Reconcile(...) of a Secret that is gone: %v", err)
	}
}

func TestSecretsBefore(t *testing.T) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	old, updated := clusterConfig("a"), with(clusterConfig("a"), workload())
	h := secretsBefore()
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: old}, q)
	if q.Len() != 0 {
		t.Errorf("want nothing for a config whose spec is as it was, got %d", q.Len())
	}
	updated.Generation = 2
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: updated}, q)
	if got, _ := q.Get(); got.Name != "oauth" || got.Namespace != "team" {
		t.Errorf("want the Secret from before, got %v", got)
	}
}

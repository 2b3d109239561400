// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

var key = types.NamespacedName{Namespace: "shop", Name: "web-extension"}

// A stored holds what a test compares of a Secret.
type stored struct {
	Type   corev1.SecretType
	Owner  types.UID
	Values map[string]string
}

func TestReconcile(t *testing.T) {
	composed := func(change ...func(*corev1.ServiceAccount)) *corev1.ServiceAccount {
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "account", Labels: map[string]string{meta.LabelExtension: "web"}}}
		for _, c := range change {
			c(a)
		}
		return a
	}
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "web-extension-client"},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte("x")},
	}
	all := stored{Type: corev1.SecretTypeOpaque, Owner: "account", Values: map[string]string{}}
	pair := stored{Type: corev1.SecretTypeTLS, Owner: "account", Values: map[string]string{"tls.crt": "", "tls.key": ""}}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    map[string]stored
	}{
		"Created": {
			reason:  "An extension should get two Secrets, of types that Kubernetes fills with no token.",
			objects: []client.Object{composed()},
			want:    map[string]stored{"web-extension-certificates": all, "web-extension-client": pair},
		},
		"Foreign": {
			reason:  "A Secret of somebody else should stay unchanged, with its owner and type.",
			objects: []client.Object{composed(), foreign},
			want: map[string]stored{
				"web-extension-certificates": all,
				"web-extension-client":       {Type: corev1.SecretTypeOpaque, Values: map[string]string{"password": "x"}},
			},
		},
		"Other": {
			reason:  "Another ServiceAccount should get none.",
			objects: []client.Object{composed(func(a *corev1.ServiceAccount) { a.Labels = nil })},
			want:    map[string]stored{},
		},
		"Deleted": {
			reason: "A ServiceAccount that is being deleted should get none.",
			objects: []client.Object{composed(func(a *corev1.ServiceAccount) {
				a.DeletionTimestamp, a.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"example.org/keep"}
			})},
			want: map[string]stored{},
		},
		"Absent": {
			reason: "A ServiceAccount that is gone needs nothing.",
			want:   map[string]stored{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithObjects(tc.objects...).Build()
			r := NewReconciler(kube)
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatalf("\n%s\nReconcile(...): %v", tc.reason, err)
				}
			}
			l := &corev1.SecretList{}
			if err := kube.List(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			got := map[string]stored{}
			for _, s := range l.Items {
				o := stored{Type: s.Type, Values: map[string]string{}}
				for k, v := range s.Data {
					o.Values[k] = string(v)
				}
				if i := slices.IndexFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "ServiceAccount" && r.Name == key.Name }); i >= 0 {
					o.Owner = s.OwnerReferences[i].UID
				}
				got[s.GetName()] = o
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nReconcile(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDeleted(t *testing.T) {
	secret := func(kind string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{meta.LabelSecretType: kind}}}
	}
	p := setup.Deleted(isExtensionSecret)
	if !p.Delete(event.DeleteEvent{Object: secret(meta.SecretTypeExtension)}) {
		t.Error("a deleted Secret of an extension should be created again")
	}
	if p.Delete(event.DeleteEvent{Object: secret(meta.SecretTypeState)}) || p.Create(event.CreateEvent{Object: secret(meta.SecretTypeExtension)}) ||
		p.Update(event.UpdateEvent{ObjectOld: secret(meta.SecretTypeExtension), ObjectNew: secret(meta.SecretTypeExtension)}) {
		t.Error("other changes of Secrets should be ignored: the extension writes its own")
	}
}

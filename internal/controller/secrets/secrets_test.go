// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func object() *v1alpha1.Webhook {
	mg := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "uid"}}
	mg.SetWriteConnectionSecretToReference(&xpv2.LocalSecretReference{Name: "s"})
	return mg
}

func secret(owner string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"key": []byte("value"), "empty": nil}}
	if owner != "" {
		controller := true
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: owner, UID: "uid", Controller: &controller}}
		if owner != "one" {
			s.OwnerReferences[0].UID = "other"
		}
	}
	return s
}

func TestValue(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []client.Object
		key     string
		want    string
		err     string
	}{
		"Found":    {reason: "The value is returned as it is.", objects: []client.Object{secret("")}, key: "key", want: "value"},
		"NoSecret": {reason: "The error names the missing Secret.", key: "key", err: `Secret "s" does not exist; create it with the key "key"`},
		"NoKey":    {reason: "The error names the missing key.", objects: []client.Object{secret("")}, key: "other", err: `Secret "s" lacks the key "other"`},
		"Empty":    {reason: "An empty value counts as missing.", objects: []client.Object{secret("")}, key: "empty", err: `Secret "s" lacks the key "empty"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := object()
			kube := fake.NewClientBuilder().WithObjects(tc.objects...).Build()
			got, err := Value(t.Context(), kube, mg, xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: "s"}, Key: tc.key})
			msg := ""
			if err != nil {
				msg = err.Error()
			}
			if diff := cmp.Diff([]string{tc.want, tc.err, tc.err}, []string{got, msg, mg.GetCondition(xpv2.TypeReady).Message}); diff != "" {
				t.Errorf("\n%s\nValue(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConnection(t *testing.T) {
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    managed.ConnectionDetails
		err     string
	}{
		"None":    {reason: "The Secret does not exist yet.", want: managed.ConnectionDetails{}},
		"Ours":    {reason: "The object's Secret is read.", objects: []client.Object{secret("one")}, want: managed.ConnectionDetails{"key": []byte("value"), "empty": nil}},
		"Nobodys": {reason: "A Secret that a user prepared is read.", objects: []client.Object{secret("")}, want: managed.ConnectionDetails{"key": []byte("value"), "empty": nil}},
		"Foreign": {reason: "Another object's Secret is refused.", objects: []client.Object{secret("another")}, err: "belongs to another object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithObjects(tc.objects...).Build()
			got, err := Connection(t.Context(), kube, object())
			if (err != nil) != (tc.err != "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("\n%s\nConnection(...): want error %q, got %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nConnection(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	first, other := object(), object()
	other.UID = "other"
	fingerprint := func(mg *v1alpha1.Webhook, text string) string {
		t.Helper()
		f, err := Fingerprint(mg, text)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := fingerprint(first, "secret")
	if f != fingerprint(first, "secret") {
		t.Error("the same secret has two fingerprints")
	}
	if f == fingerprint(first, "changed") || f == fingerprint(other, "secret") {
		t.Error("another secret, or another object's, has the same fingerprint")
	}
}

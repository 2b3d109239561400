// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"tailscale.com/types/key"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestSigner(t *testing.T) {
	private, err := key.NewNLPrivate().MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name string, data string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "lock"}, Data: map[string][]byte{name: []byte(data)}}
	}
	ref := func(name string) *v1alpha1.TailnetLock {
		return &v1alpha1.TailnetLock{SigningKeySecretRef: v1alpha1.SigningKeySecretReference{Namespace: "team", Name: "lock", Key: name}}
	}
	cases := map[string]struct {
		reason    string
		namespace string
		lock      *v1alpha1.TailnetLock
		secrets   []client.Object
		signs     bool
		err       string
		condition xpv2.ConditionReason
	}{
		"None":       {reason: "Without a reference, no Secret is read.", secrets: []client.Object{secret(meta.SecretKeySigningKey, string(private))}},
		"Signs":      {reason: "A cluster config may name any Secret.", lock: ref(""), secrets: []client.Object{secret(meta.SecretKeySigningKey, string(private)+"\n")}, signs: true},
		"OtherKey":   {reason: "The reference can name another key.", lock: ref("lock.key"), secrets: []client.Object{secret("lock.key", string(private))}, signs: true},
		"Namespaced": {reason: "A namespaced config may name a Secret of its namespace.", namespace: "team", lock: ref(""), secrets: []client.Object{secret(meta.SecretKeySigningKey, string(private))}, signs: true},
		"Thief":      {reason: "A namespaced config must not use another namespace's Secret.", namespace: "apps", lock: ref(""), secrets: []client.Object{secret(meta.SecretKeySigningKey, string(private))}, err: "in its namespace"},
		"NoSecret":   {reason: "A missing Secret is named.", lock: ref(""), err: "Secret team/lock with the signing key", condition: meta.ReasonSecretNotFound},
		"NoKey":      {reason: "A Secret without the key is named.", lock: ref(""), secrets: []client.Object{secret("other", string(private))}, err: "under signing_key", condition: meta.ReasonSecretIncomplete},
		"BadKey":     {reason: "A text that is no private key is not shown.", lock: ref(""), secrets: []client.Object{secret(meta.SecretKeySigningKey, strings.TrimPrefix(string(private), "nlpriv:"))}, err: "128 hexadecimal digits", condition: meta.ReasonSecretIncomplete},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Connector{kube: fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(tc.secrets...).Build()}
			got, err := c.signer(t.Context(), config{kind: "Config", namespace: tc.namespace, name: "home", spec: v1alpha1.ProviderConfigSpec{TailnetLock: tc.lock}})
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("\n%s\nsigner(...): want error %q, got: %v", tc.reason, tc.err, err)
			}
			if (got != nil) != tc.signs {
				t.Errorf("\n%s\nsigner(...): want a signer %t, got %v", tc.reason, tc.signs, got)
			}
			var ce *CredentialsError
			if errors.As(err, &ce) != (tc.condition != "") || ce != nil && ce.Reason != tc.condition {
				t.Errorf("\n%s\nsigner(...): want reason %q, got: %v", tc.reason, tc.condition, err)
			}
			if err != nil && strings.Contains(err.Error(), string(private[20:40])) {
				t.Errorf("\n%s\nsigner(...): the error shows the key", tc.reason)
			}
		})
	}
}

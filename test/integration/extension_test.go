// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// TestExtensionSecrets checks that the provider, with its permissions, creates the Secrets of a
// dedicated extension, and creates them again when somebody deletes them.
func TestExtensionSecrets(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "web-extension", Labels: map[string]string{meta.LabelExtension: "web"}}}
	e.create(account)
	wanted := map[string]corev1.SecretType{"web-extension-certificates": corev1.SecretTypeOpaque, "web-extension-client": corev1.SecretTypeTLS}
	for name, secretType := range wanted {
		key := client.ObjectKey{Namespace: e.namespace, Name: name}
		var previous types.UID
		for _, round := range []string{"first", "again"} {
			s := &corev1.Secret{}
			e.eventually("Secret "+name+" exists "+round, func() error {
				if err := shared.kube.Get(t.Context(), key, s); err != nil {
					return err
				}
				if s.GetUID() == previous {
					return errors.New("the Secret has not been deleted yet")
				}
				return nil
			})
			if s.Type != secretType || len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != account.GetUID() {
				t.Errorf("Secret %s: want type %s, and ServiceAccount %s as its owner, got %s and %v", name, secretType, account.GetUID(), s.Type, s.OwnerReferences)
			}
			previous = s.GetUID()
			if round == "first" {
				e.must(shared.kube.Delete(t.Context(), s))
			}
		}
	}
}

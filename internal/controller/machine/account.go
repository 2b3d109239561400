// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Tailscaled registers an account with the certificate authority when it requests its first
// certificate, by the key in its state, or by a new one. Let's Encrypt allows ten new accounts in
// three hours from one address (https://letsencrypt.org/docs/rate-limits/), which all namespaces
// of a cluster often share. So the machines of a namespace that request certificates start with the
// same key. Namespaces never share one: the holder can revoke the certificates of the account.
//
// The account belongs to the state that has its certificates, because a renewal names the
// certificate that it replaces, and only the account of that certificate may do so
// (tailscale/tailscale#18251). A state that exists keeps its account.

const (
	// keyAccount is the key of the account in tailscaled's state (tailscale.com feature/acme,
	// certstore.go, acmePEMName).
	keyAccount = "acme-account.key.pem"

	// typeAccountKey is the PEM type of an account's key (certstore.go, encodeECDSAKey).
	typeAccountKey = "EC PRIVATE KEY"
)

// requestsCertificates reports whether a Machine's pod requests the certificates of its group: the
// first of those for ingress.
func requestsCertificates(mg *v1alpha1.Machine) bool {
	return mg.GetLabels()[meta.LabelDirection] == proxy.DirectionIngress && strings.HasSuffix(mg.GetName(), "-0")
}

// initialState returns the data of a Machine's new state Secret.
func initialState(ctx context.Context, kube client.Client, mg *v1alpha1.Machine) (map[string][]byte, error) {
	if !requestsCertificates(mg) {
		return nil, nil
	}
	key, err := namespaceAccount(ctx, kube, mg.GetNamespace())
	if err != nil || key == nil {
		return nil, err
	}
	return map[string][]byte{keyAccount: key}, nil
}

// namespaceAccount returns the key of a namespace's account, in PEM, and makes one if there is none.
// It returns nil if the Secret has no usable key: tailscaled then makes a separate account.
func namespaceAccount(ctx context.Context, kube client.Client, namespace string) ([]byte, error) {
	s := &corev1.Secret{}
	err := kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: meta.SecretACMEAccount}, s)
	if err == nil {
		return accountKey(s), nil
	}
	if !kerrors.IsNotFound(err) {
		return nil, errors.Wrapf(err, "cannot get Secret %q", meta.SecretACMEAccount)
	}
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errors.Wrap(err, "cannot generate the key of an ACME account")
	}
	key, err := encodeAccount(k)
	if err != nil {
		return nil, err
	}
	s = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: meta.SecretACMEAccount,
			Labels: map[string]string{meta.LabelSecretType: meta.SecretTypeACMEAccount},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{keyAccount: key},
	}
	return key, errors.Wrapf(kube.Create(ctx, s), "cannot create Secret %q", meta.SecretACMEAccount)
}

// accountKey returns the key in an account's Secret, or nil if it is not one that tailscaled makes.
// Users may write the Secret.
func accountKey(s *corev1.Secret) []byte {
	block, _ := pem.Decode(s.Data[keyAccount])
	if block == nil || block.Type != typeAccountKey {
		return nil
	}
	k, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil || k.Curve != elliptic.P256() {
		return nil
	}
	out, err := encodeAccount(k)
	if err != nil {
		return nil
	}
	return out
}

func encodeAccount(k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode the key of an ACME account")
	}
	return pem.EncodeToMemory(&pem.Block{Type: typeAccountKey, Bytes: der}), nil
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package secrets reads the Secrets that managed resources name: Secrets with values that are sent
// to Tailscale, and connection Secrets with values that Tailscale shows only once. The managed
// reconciler writes the connection Secrets.
package secrets

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// rounds is the number of hash rounds. They make it slow to guess a weak password from a status.
const rounds = 10000

// Value returns the value of a key of a Secret in the object's namespace.
func Value(ctx context.Context, kube client.Reader, mg resource.Managed, ref xpv2.LocalSecretKeySelector) (string, error) {
	s := &corev1.Secret{}
	err := kube.Get(ctx, types.NamespacedName{Namespace: mg.GetNamespace(), Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return "", unusable(mg, "Secret %q does not exist; create it with the key %q", ref.Name, ref.Key)
	}
	if err != nil {
		return "", errors.Wrapf(err, "cannot get Secret %q", ref.Name)
	}
	v := string(s.Data[ref.Key])
	if v == "" {
		return "", unusable(mg, "Secret %q lacks the key %q", ref.Name, ref.Key)
	}
	return v, nil
}

func unusable(mg resource.Managed, format string, args ...any) error {
	err := errors.Errorf(format, args...)
	mg.SetConditions(xpv2.Unavailable().WithMessage(err.Error()))
	return err
}

// Fingerprint returns a hash of a text, by which a later change of the text is noticed. It is
// salted with the object's UID and slow to compute, because the object's status shows it.
func Fingerprint(mg resource.Managed, text string) (string, error) {
	h, err := pbkdf2.Key(sha256.New, text, []byte("gateway.tailscale.com/"+string(mg.GetUID())), rounds, 16)
	return hex.EncodeToString(h), errors.Wrap(err, "cannot compute a fingerprint")
}

// Connection returns the data of the object's connection Secret. It returns nothing if the Secret
// does not exist or the object wants none, and an error if another object controls it.
func Connection(ctx context.Context, kube client.Reader, mg resource.ModernManaged) (managed.ConnectionDetails, error) {
	ref := mg.GetWriteConnectionSecretToReference()
	if ref == nil {
		return managed.ConnectionDetails{}, nil
	}
	s := &corev1.Secret{}
	err := kube.Get(ctx, types.NamespacedName{Namespace: mg.GetNamespace(), Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return managed.ConnectionDetails{}, nil
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get connection Secret %q", ref.Name)
	}
	if c := metav1.GetControllerOf(s); c != nil && c.UID != mg.GetUID() {
		return nil, errors.Errorf("Secret %q exists and belongs to another object; name another in spec.writeConnectionSecretToRef", ref.Name)
	}
	out := managed.ConnectionDetails{}
	for k, v := range s.Data {
		out[k] = v
	}
	return out, nil
}

// Wanted reports whether the object wants a connection Secret.
func Wanted(mg resource.ModernManaged) bool { return mg.GetWriteConnectionSecretToReference() != nil }

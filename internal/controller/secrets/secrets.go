// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package secrets reads the Secrets that managed resources name: those that hold
// what is sent to Tailscale, and the connection Secrets that hold what Tailscale
// shows only once. Connection Secrets are written by the managed reconciler.
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

// rounds of hashing make it slow to guess a weak password from a status.
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

// Fingerprint returns a hash that reports whether a text is the same as before. It
// is salted with the object's UID and slow to compute, for it is shown in the
// object's status.
func Fingerprint(mg resource.Managed, text string) (string, error) {
	h, err := pbkdf2.Key(sha256.New, text, []byte("gateway.tailscale.com/"+string(mg.GetUID())), rounds, 16)
	return hex.EncodeToString(h), errors.Wrap(err, "cannot compute a fingerprint")
}

// Connection returns what is in the object's connection Secret: nothing if there
// is none, or none is wanted. It refuses that of somebody else.
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

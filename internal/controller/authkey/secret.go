// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package authkey

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// secretKey is the key of the auth key in the connection Secret.
const secretKey = "authkey"

// secretType is the value of meta.LabelSecretType for connection Secrets that the provider watches.
const secretType = "auth-key"

// Annotations of a connection Secret. They are written together with the key, so none of them can
// be lost alone.
const (
	annotationID       = "gateway.tailscale.com/auth-key-id"
	annotationIssued   = "gateway.tailscale.com/auth-key-issued"
	annotationReplaced = "gateway.tailscale.com/auth-key-replaced"
	annotationRequest  = "gateway.tailscale.com/auth-key-request"
	annotationReissued = "gateway.tailscale.com/auth-key-reissued"
)

// An issued describes the key in a connection Secret.
type issued struct {
	// id is the ID of the key, or "" if the Secret has none.
	id string

	// at is when the key was created, by the local clock.
	at time.Time

	// replaced is the ID of the previous key.
	replaced string

	// request is the fingerprint of the request.
	request string

	// reissued is the token for which the last key was created.
	reissued string
}

// issuedIn reads a connection Secret, which may be nil. Without the key itself it returns only its
// age and the token.
func issuedIn(s *corev1.Secret) issued {
	if s == nil {
		return issued{}
	}
	a := s.GetAnnotations()
	issuance := issued{reissued: a[annotationReissued]}
	if t, err := time.Parse(time.RFC3339, a[annotationIssued]); err == nil {
		issuance.at = t
	}
	if len(s.Data[secretKey]) == 0 {
		return issuance
	}
	issuance.id, issuance.replaced, issuance.request = a[annotationID], a[annotationReplaced], a[annotationRequest]
	return issuance
}

// getSecret returns an object's connection Secret, or nil if it does not exist or the object has
// none. It returns an error for a Secret of another owner.
func getSecret(ctx context.Context, kube client.Client, mg *v1alpha1.AuthKey) (*corev1.Secret, error) {
	ref := mg.GetWriteConnectionSecretToReference()
	if ref == nil {
		return nil, nil // No Secret is a valid result.
	}
	s := &corev1.Secret{}
	err := kube.Get(ctx, types.NamespacedName{Namespace: mg.GetNamespace(), Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return nil, nil // No Secret is a valid result.
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get connection Secret %q", ref.Name)
	}
	if metav1.IsControlledBy(s, mg) {
		return s, nil
	}
	if mg.GetDeletionTimestamp() != nil {
		// A Secret of another owner is not used.
		return nil, nil // No Secret is a valid result.
	}
	return nil, errors.Errorf("Secret %q exists and is not this AuthKey's; delete it, or name another in spec.writeConnectionSecretToRef", ref.Name)
}

// writeSecret writes a key and its annotations to the connection Secret.
func writeSecret(ctx context.Context, kube client.Client, mg *v1alpha1.AuthKey, k *tailscale.Key, issuance issued) error {
	s := resource.LocalConnectionSecretFor(mg, v1alpha1.AuthKeyGroupVersionKind)
	s.SetLabels(map[string]string{meta.LabelSecretType: secretType})
	s.SetAnnotations(map[string]string{
		annotationID:       k.ID,
		annotationIssued:   issuance.at.UTC().Format(time.RFC3339),
		annotationReplaced: issuance.replaced,
		annotationRequest:  issuance.request,
		annotationReissued: issuance.reissued,
	})
	s.Data = map[string][]byte{secretKey: []byte(k.Key)}
	a := resource.NewApplicatorWithRetry(resource.NewAPIPatchingApplicator(kube), resource.IsAPIErrorWrapped, nil)
	return errors.Wrap(a.Apply(ctx, s, resource.ConnectionSecretMustBeControllableBy(mg.GetUID())), "cannot write the key to the connection Secret")
}

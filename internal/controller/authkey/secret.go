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

// secretKey is where the connection Secret has the key.
const secretKey = "authkey"

// secretType is the value of meta.LabelSecretType that makes the provider watch
// a connection Secret.
const secretType = "auth-key"

// Annotations of a connection Secret. They change in the same write as the key,
// so none of them can be lost alone.
const (
	annotationID       = "gateway.tailscale.com/auth-key-id"
	annotationIssued   = "gateway.tailscale.com/auth-key-issued"
	annotationReplaced = "gateway.tailscale.com/auth-key-replaced"
	annotationRequest  = "gateway.tailscale.com/auth-key-request"
	annotationReissued = "gateway.tailscale.com/auth-key-reissued"
)

// issued is what a connection Secret says about the key in it.
type issued struct {
	// id of the key, "" if the Secret has none.
	id string

	// at is when the key was minted, by our clock.
	at time.Time

	// replaced is the ID of the key before.
	replaced string

	// request is the fingerprint of what was asked for.
	request string

	// reissued is the token that the key was last minted for.
	reissued string
}

// issuedIn reads a connection Secret, which may be nil. Without the key itself
// only its age and the token count.
func issuedIn(s *corev1.Secret) issued {
	if s == nil {
		return issued{}
	}
	a := s.GetAnnotations()
	in := issued{reissued: a[annotationReissued]}
	if t, err := time.Parse(time.RFC3339, a[annotationIssued]); err == nil {
		in.at = t
	}
	if len(s.Data[secretKey]) == 0 {
		return in
	}
	in.id, in.replaced, in.request = a[annotationID], a[annotationReplaced], a[annotationRequest]
	return in
}

// getSecret reads an object's connection Secret: nil if there is none, or none is
// wanted. It refuses that of somebody else.
func getSecret(ctx context.Context, kube client.Client, mg *v1alpha1.AuthKey) (*corev1.Secret, error) {
	ref := mg.GetWriteConnectionSecretToReference()
	if ref == nil {
		return nil, nil // None is an answer.
	}
	s := &corev1.Secret{}
	err := kube.Get(ctx, types.NamespacedName{Namespace: mg.GetNamespace(), Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return nil, nil // None is an answer.
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get connection Secret %q", ref.Name)
	}
	if metav1.IsControlledBy(s, mg) {
		return s, nil
	}
	if mg.GetDeletionTimestamp() != nil {
		// Whatever it is, it is not ours to read.
		return nil, nil // None is an answer.
	}
	return nil, errors.Errorf("Secret %q exists and is not this AuthKey's; delete it, or name another in spec.writeConnectionSecretToRef", ref.Name)
}

// writeSecret puts a key into the connection Secret, together with what must be
// known of it.
func writeSecret(ctx context.Context, kube client.Client, mg *v1alpha1.AuthKey, k *tailscale.Key, in issued) error {
	s := resource.LocalConnectionSecretFor(mg, v1alpha1.AuthKeyGroupVersionKind)
	s.SetLabels(map[string]string{meta.LabelSecretType: secretType})
	s.SetAnnotations(map[string]string{
		annotationID:       k.ID,
		annotationIssued:   in.at.UTC().Format(time.RFC3339),
		annotationReplaced: in.replaced,
		annotationRequest:  in.request,
		annotationReissued: in.reissued,
	})
	s.Data = map[string][]byte{secretKey: []byte(k.Key)}
	a := resource.NewApplicatorWithRetry(resource.NewAPIPatchingApplicator(kube), resource.IsAPIErrorWrapped, nil)
	return errors.Wrap(a.Apply(ctx, s, resource.ConnectionSecretMustBeControllableBy(mg.GetUID())), "cannot write the key to the connection Secret")
}

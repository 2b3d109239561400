// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// Finalizer keeps a credentials Secret until nothing that it must clean up
	// is left.
	Finalizer = "gateway.tailscale.com/credentials-in-use"

	// SecretTypeCredentials is the value of meta.LabelSecretType that makes the
	// provider watch a credentials Secret.
	SecretTypeCredentials = "credentials"
)

// A CredentialsError says that a credentials Secret must be mended.
type CredentialsError struct {
	Reason  xpv2.ConditionReason
	Message string
}

// Error implements error.
func (e *CredentialsError) Error() string { return e.Message }

// credentials reads an OAuth client from a Secret. Space around values is
// dropped: files that Secrets are made of often end in a newline.
func credentials(s *corev1.Secret) (tailscale.Config, error) {
	cfg := tailscale.Config{
		ClientID:     strings.TrimSpace(string(s.Data[meta.SecretKeyClientID])),
		ClientSecret: strings.TrimSpace(string(s.Data[meta.SecretKeyClientSecret])),
	}
	var missing []string
	if cfg.ClientID == "" {
		missing = append(missing, meta.SecretKeyClientID)
	}
	if cfg.ClientSecret == "" {
		missing = append(missing, meta.SecretKeyClientSecret)
	}
	if len(missing) == 0 {
		return cfg, nil
	}
	return tailscale.Config{}, &CredentialsError{
		Reason:  meta.ReasonSecretIncomplete,
		Message: fmt.Sprintf("Secret %s/%s lacks %s; add what the OAuth client's page shows", s.GetNamespace(), s.GetName(), strings.Join(missing, " and ")),
	}
}

// Protect marks a credentials Secret as in use: it is watched, and kept while
// it is needed. A Secret that is being deleted is left as it is.
func Protect(ctx context.Context, kube client.Client, s *corev1.Secret) error {
	if s.GetDeletionTimestamp() != nil {
		return nil
	}
	before := s.DeepCopy()
	changed := controllerutil.AddFinalizer(s, Finalizer)
	if s.GetLabels()[meta.LabelSecretType] != SecretTypeCredentials {
		metav1.SetMetaDataLabel(&s.ObjectMeta, meta.LabelSecretType, SecretTypeCredentials)
		changed = true
	}
	if !changed {
		return nil
	}
	// Finalizers are a list: the patch must fail if someone else changed it.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return errors.Wrapf(kube.Patch(ctx, s, patch), "cannot protect Secret %s/%s", s.GetNamespace(), s.GetName())
}

// Release undoes Protect.
func Release(ctx context.Context, kube client.Client, s *corev1.Secret) error {
	before := s.DeepCopy()
	if !controllerutil.RemoveFinalizer(s, Finalizer) {
		return nil
	}
	delete(s.Labels, meta.LabelSecretType)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := kube.Patch(ctx, s, patch)
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot release Secret %s/%s", s.GetNamespace(), s.GetName())
}

// Authenticated returns the condition that an error of Connect or of a first
// call to the API means. It returns false for an error that says nothing about
// the credential.
func Authenticated(err error) (xpv2.Condition, bool) {
	if err == nil {
		return condition(corev1.ConditionTrue, meta.ReasonCredentialAccepted, ""), true
	}
	var ce *CredentialsError
	if errors.As(err, &ce) {
		return condition(corev1.ConditionFalse, ce.Reason, ce.Message), true
	}
	var ae *tailscale.Error
	if !errors.As(err, &ae) {
		return xpv2.Condition{}, false
	}
	switch ae.Class {
	case tailscale.ClassUnauthorized:
		return condition(corev1.ConditionFalse, meta.ReasonCredentialRejected,
			"Tailscale's API rejected the OAuth client; check client_id and client_secret in the Secret, and that the client was not revoked"), true
	case tailscale.ClassForbidden:
		return condition(corev1.ConditionFalse, meta.ReasonScopeMissing,
			fmt.Sprintf("The OAuth client lacks the scope %s; give it devices:core, auth_keys and services", ae.Scope)), true
	case tailscale.ClassTailnetNotFound:
		return condition(corev1.ConditionFalse, meta.ReasonTailnetNotFound,
			"The OAuth client knows no such tailnet; correct spec.tailnet, or use - for the client's own"), true
	case tailscale.ClassUnavailable, tailscale.ClassRateLimited, tailscale.ClassNotFound, tailscale.ClassInvalid:
	}
	return condition(corev1.ConditionFalse, meta.ReasonAPIUnavailable, capital(ae.Error())+"; it is tried again"), true
}

func condition(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return xpv2.Condition{
		Type:               meta.TypeAuthenticated,
		Status:             status,
		LastTransitionTime: metav1.Now(),
		Reason:             reason,
		Message:            message,
	}
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const (
	// Finalizer keeps a credentials Secret until no resource needs it to clean up.
	Finalizer = "gateway.tailscale.com/credentials-in-use"

	// SecretTypeCredentials is the value of meta.LabelSecretType by which the provider watches a
	// credentials Secret.
	SecretTypeCredentials = "credentials"
)

// A CredentialsError describes what must be fixed before a provider config can be used.
type CredentialsError struct {
	Reason  xpv2.ConditionReason
	Message string
}

// Error implements error.
func (e *CredentialsError) Error() string { return e.Message }

// shows reports whether the error belongs in the Ready condition of a resource. A resource that
// works keeps its condition while its Secret is replaced.
func (e *CredentialsError) shows(mg resource.Managed) bool {
	refused := []xpv2.ConditionReason{meta.ReasonNamespaceNotAllowed, meta.ReasonInvalidSelector, meta.ReasonNotGranted, meta.ReasonHostNotAllowed,
		meta.ReasonTailnetChanged, meta.ReasonTailnetUnknown}
	return slices.Contains(refused, e.Reason) || mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue
}

// credentials returns the credentials of a config. It protects the Secret, unless readOnly is set.
func (c *Connector) credentials(ctx context.Context, pc config, readOnly bool) (tailscale.Config, error) {
	cr := pc.spec.Credentials
	if cr.WorkloadIdentity != nil {
		return c.identity(pc)
	}
	ref := cr.SecretReference()
	if ref == nil {
		return tailscale.Config{}, &CredentialsError{
			Reason:  meta.ReasonSecretNotFound,
			Message: fmt.Sprintf("%s %q has no credentials; set one of oauthSecretRef, workloadIdentity and apiKeySecretRef", pc.kind, pc.name),
		}
	}
	// Otherwise, any user who may write a config could use any namespace's Secret.
	if pc.namespace != "" && ref.Namespace != pc.namespace {
		return tailscale.Config{}, errors.Errorf("ProviderConfig %q must use a Secret in its namespace", pc.name)
	}
	s := &corev1.Secret{}
	err := c.kube.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, s)
	if kerrors.IsNotFound(err) {
		return tailscale.Config{}, &CredentialsError{
			Reason:  meta.ReasonSecretNotFound,
			Message: fmt.Sprintf("Secret %s/%s does not exist; create it with %s", ref.Namespace, ref.Name, wanted(cr)),
		}
	}
	if err != nil {
		return tailscale.Config{}, errors.Wrapf(err, "cannot get Secret %s/%s", ref.Namespace, ref.Name)
	}
	cfg, err := read(s, cr)
	if err != nil || readOnly {
		return cfg, err
	}
	return cfg, Protect(ctx, c.kube, s)
}

// wanted describes what a credentials Secret must hold.
func wanted(cr v1alpha1.Credentials) string {
	if cr.APIKeySecretRef != nil {
		return "the key " + apiKey(cr) + " of an API access token"
	}
	return "the keys client_id and client_secret of an OAuth client"
}

// apiKey returns the key under which a Secret holds an API access token.
func apiKey(cr v1alpha1.Credentials) string {
	if cr.APIKeySecretRef.Key == "" {
		return meta.SecretKeyAPIKey
	}
	return cr.APIKeySecretRef.Key
}

// OAuth returns the OAuth client in a Secret, with the format of a provider config's Secret.
func OAuth(s *corev1.Secret) (tailscale.Config, error) { return read(s, v1alpha1.Credentials{}) }

// read returns the credentials in a Secret. It trims space around values, because the files that
// Secrets are made from often end in a newline.
func read(s *corev1.Secret, cr v1alpha1.Credentials) (tailscale.Config, error) {
	var missing []string
	value := func(key string) string {
		v := strings.TrimSpace(string(s.Data[key]))
		if v == "" {
			missing = append(missing, key)
		}
		return v
	}
	name := s.GetNamespace() + "/" + s.GetName()
	var cfg tailscale.Config
	page := "the OAuth client's page shows"
	if cr.APIKeySecretRef != nil {
		page = "the page of API access tokens shows once"
		cfg.APIKey = value(apiKey(cr))
		cfg.Credential = "the API access token in Secret " + name
		cfg.Hint = "put a new one there, for they end after 90 days at most"
	} else {
		cfg.ClientID, cfg.ClientSecret = value(meta.SecretKeyClientID), value(meta.SecretKeyClientSecret)
		cfg.Credential = "the OAuth client in Secret " + name
		cfg.Hint = "check client_id and client_secret there, and that the client was not revoked"
	}
	if len(missing) == 0 {
		return cfg, nil
	}
	return tailscale.Config{}, &CredentialsError{
		Reason:  meta.ReasonSecretIncomplete,
		Message: fmt.Sprintf("Secret %s lacks %s; add what %s", name, strings.Join(missing, " and "), page),
	}
}

// Protect adds a label by which a credentials Secret is watched, and a finalizer that keeps it
// while it is needed. A Secret that is being deleted stays unchanged.
func Protect(ctx context.Context, kube client.Client, s *corev1.Secret) error {
	if s.GetDeletionTimestamp() != nil {
		return nil
	}
	original := s.DeepCopy()
	changed := controllerutil.AddFinalizer(s, Finalizer)
	if s.GetLabels()[meta.LabelSecretType] != SecretTypeCredentials {
		metav1.SetMetaDataLabel(&s.ObjectMeta, meta.LabelSecretType, SecretTypeCredentials)
		changed = true
	}
	if !changed {
		return nil
	}
	// Finalizers are a list: the patch must fail if another client changed it.
	patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	return errors.Wrapf(kube.Patch(ctx, s, patch), "cannot protect Secret %s/%s", s.GetNamespace(), s.GetName())
}

// Release undoes Protect.
func Release(ctx context.Context, kube client.Client, s *corev1.Secret) error {
	original := s.DeepCopy()
	if !controllerutil.RemoveFinalizer(s, Finalizer) {
		return nil
	}
	delete(s.Labels, meta.LabelSecretType)
	patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	err := kube.Patch(ctx, s, patch)
	return errors.Wrapf(client.IgnoreNotFound(err), "cannot release Secret %s/%s", s.GetNamespace(), s.GetName())
}

// Authenticated returns the condition for an error of Connect or of the first call to the API. It
// returns false for an error that is not about the credential.
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
		return condition(corev1.ConditionFalse, meta.ReasonCredentialRejected, capital(ae.Error())), true
	case tailscale.ClassForbidden:
		return condition(corev1.ConditionFalse, meta.ReasonScopeMissing, capital(ae.Error())), true
	case tailscale.ClassTailnetNotFound:
		return condition(corev1.ConditionFalse, meta.ReasonTailnetNotFound,
			"The credential knows no such tailnet; correct spec.tailnet of the provider config, or use - for the credential's own"), true
	case tailscale.ClassUnavailable, tailscale.ClassRateLimited, tailscale.ClassNotFound, tailscale.ClassInvalid, tailscale.ClassNameTaken,
		tailscale.ClassPlanRequired, tailscale.ClassQuotaExceeded, tailscale.ClassConflict, tailscale.ClassPreconditionFailed:
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

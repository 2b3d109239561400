// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package postureintegration holds the controller of PostureIntegrations. Tailscale permits one for
// each provider of device attributes. So the controller finds an integration by its ID, and by its
// provider until the ID is recorded.
package postureintegration

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/ownership"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// maxError limits the length of a provider's error in the status, in bytes.
const maxError = 200

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	PostureIntegrations(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.PostureIntegration, error)
	PostureIntegration(ctx context.Context, id string) (*tailscale.PostureIntegration, error)
	CreatePostureIntegration(ctx context.Context, p tailscale.PostureIntegrationRequest) (string, error)
	UpdatePostureIntegration(ctx context.Context, id, cloudID, clientID, tenantID, secret string) error
	DeletePostureIntegration(ctx context.Context, id string) error
}

type external struct {
	kinds.NopDisconnect

	api  api
	kube client.Reader

	ours string // Set by Observe: the ID of the object's integration that Create must record.
}

// Observe compares the integration in the shared list with the spec.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.PostureIntegration) (managed.ExternalObservation, error) {
	if err := e.checkConflict(ctx, mg); err != nil {
		return managed.ExternalObservation{}, ownership.IgnoreConflict(mg, err)
	}
	if xpmeta.WasDeleted(mg) {
		id, err := e.integrations(mg).FindOwned(ctx, mg)
		return managed.ExternalObservation{ResourceExists: id != "", ResourceUpToDate: true}, err
	}
	p, err := e.integrations(mg).Find(ctx, mg, tailscale.Cached)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if p == nil {
		mg.Status.AtProvider = v1alpha1.PostureIntegrationObservation{}
		return managed.ExternalObservation{}, nil
	}
	if !ownership.Manages(mg) {
		observe(mg, p)
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	if xpmeta.GetExternalName(mg) != p.ID {
		if err := e.integrations(mg).MayManage(mg, p.ID); err != nil {
			return managed.ExternalObservation{}, err
		}
		// Only Create can record the ID.
		e.ours = p.ID
		return managed.ExternalObservation{}, nil
	}
	observe(mg, p)
	if string(p.Provider) != mg.Spec.ForProvider.Provider {
		return managed.ExternalObservation{}, ownership.NotOwned(mg, "integration %q is with the provider %q, which Tailscale cannot change; correct the annotation %s", p.ID, p.Provider, xpmeta.AnnotationKeyExternalName)
	}
	_, h, err := e.secret(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	d := diff(mg, p)
	if d == "" && mg.Status.AtProvider.SecretHash != h {
		d = "secret"
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: d == "", Diff: d}, nil
}

func (e *external) checkConflict(ctx context.Context, mg *v1alpha1.PostureIntegration) error {
	return ownership.CheckConflict(ctx, e.kube, &v1alpha1.PostureIntegrationList{}, v1alpha1.PostureIntegrationKind, mg, func(o resource.Managed) string {
		if p, ok := o.(*v1alpha1.PostureIntegration); ok {
			return "provider " + p.Spec.ForProvider.Provider
		}
		return ""
	})
}

// integrations returns the finder of the integration with the object's external name, or otherwise
// with its provider.
func (e *external) integrations(mg *v1alpha1.PostureIntegration) ownership.Lookup[tailscale.PostureIntegration] {
	return ownership.Lookup[tailscale.PostureIntegration]{
		Singular: "posture integration",
		Plural:   "posture integrations",
		List:     e.api.PostureIntegrations,
		ID:       func(p tailscale.PostureIntegration) string { return p.ID },
		Get:      e.api.PostureIntegration,
		Like:     func(p tailscale.PostureIntegration) bool { return string(p.Provider) == mg.Spec.ForProvider.Provider },
		Recorded: mg.Status.AtProvider.ID,
		Adopt:    mg.Spec.ForProvider.AdoptionPolicy == v1alpha1.AdoptionPolicyAdopt,
		Exists:   "integration %q with this provider",
	}
}

// observe sets the status. It keeps the hash of the last secret that was sent, because Tailscale
// does not return the secret. It omits the time of the last synchronization, which changes with
// each synchronization.
func observe(mg *v1alpha1.PostureIntegration, p *tailscale.PostureIntegration) {
	failure := firstLine(p.Status.Error)
	mg.Status.AtProvider = v1alpha1.PostureIntegrationObservation{
		ID:           p.ID,
		Provider:     string(p.Provider),
		Error:        failure,
		MatchedCount: &p.Status.MatchedCount,
		SecretHash:   mg.Status.AtProvider.SecretHash,
	}
	if failure != "" {
		mg.SetConditions(xpv2.Unavailable().WithMessage("Tailscale cannot synchronise with the provider, check cloud, client, tenant and secret: " + failure))
		return
	}
	mg.SetConditions(xpv2.Available())
}

// firstLine returns the first line of an error. The other lines describe a single request, and
// differ each time.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > maxError {
		s = strings.ToValidUTF8(s[:maxError], "") + "..."
	}
	return s
}

// diff returns the name of a field that differs from the spec.
func diff(mg *v1alpha1.PostureIntegration, observed *tailscale.PostureIntegration) string {
	want := mg.Spec.ForProvider
	switch {
	case observed.CloudID != want.CloudID:
		return "cloudID"
	case observed.ClientID != want.ClientID:
		return "clientID"
	case observed.TenantID != want.TenantID:
		return "tenantID"
	}
	return ""
}

// secret returns the provider's secret and a hash to detect changes since the last write.
func (e *external) secret(ctx context.Context, mg *v1alpha1.PostureIntegration) (value, hash string, err error) {
	value, err = secrets.Value(ctx, e.kube, mg, mg.Spec.ForProvider.ClientSecretSecretRef)
	if err != nil {
		return "", "", err
	}
	hash, err = secrets.Fingerprint(mg, value)
	return value, hash, err
}

// Create creates an integration, or records one that already belongs to the object.
func (e *external) Create(ctx context.Context, mg *v1alpha1.PostureIntegration) (managed.ExternalCreation, error) {
	// The next observation of a recorded integration sends the secret.
	if recorded, err := e.integrations(mg).Record(ctx, mg, e.ours); recorded || err != nil {
		return managed.ExternalCreation{}, err
	}
	secret, _, err := e.secret(ctx, mg)
	if err != nil {
		return managed.ExternalCreation{}, ownership.NotSent(err)
	}
	want := mg.Spec.ForProvider
	id, err := e.api.CreatePostureIntegration(ctx, tailscale.PostureIntegrationRequest{
		Provider:     tsclient.PostureIntegrationProvider(want.Provider),
		CloudID:      want.CloudID,
		ClientID:     want.ClientID,
		TenantID:     want.TenantID,
		ClientSecret: secret,
	})
	if err != nil {
		return managed.ExternalCreation{}, errors.Wrap(err, "cannot create posture integration")
	}
	ownership.SetOwned(mg, id)
	return managed.ExternalCreation{}, nil
}

// Update replaces all fields of the integration except for its provider.
func (e *external) Update(ctx context.Context, mg *v1alpha1.PostureIntegration) (managed.ExternalUpdate, error) {
	secret, h, err := e.secret(ctx, mg)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	id, want := xpmeta.GetExternalName(mg), mg.Spec.ForProvider
	if err := e.api.UpdatePostureIntegration(ctx, id, want.CloudID, want.ClientID, want.TenantID, secret); err != nil {
		return managed.ExternalUpdate{}, errors.Wrapf(err, "cannot update posture integration %q", id)
	}
	mg.Status.AtProvider.SecretHash = h
	return managed.ExternalUpdate{}, nil
}

// Delete deletes the integration.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.PostureIntegration) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	id, err := e.integrations(mg).FindOwned(ctx, mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	return managed.ExternalDelete{}, e.integrations(mg).Delete(ctx, id, e.api.DeletePostureIntegration)
}

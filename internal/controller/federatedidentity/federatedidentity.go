// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package federatedidentity holds the controller of FederatedIdentities: other issuers' tokens that
// Tailscale's API accepts. The controller finds an identity by a marker in its description. An
// identity has no secret.
package federatedidentity

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/ownership"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// keyAudience is the key of the required audience of tokens in the connection Secret. The
// Secret also has the client ID.
const keyAudience = "audience"

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	ownership.CredentialsAPI

	CreateFederatedIdentity(ctx context.Context, r tailscale.FederatedIdentityRequest) (*tailscale.Key, error)
	SetFederatedIdentity(ctx context.Context, id string, r tailscale.FederatedIdentityRequest) error
	DeleteFederatedIdentity(ctx context.Context, id string) error
}

type external struct {
	kinds.NopDisconnect

	api       api
	kube      client.Reader
	clusterID string
}

// Observe compares the identity in the shared list with the spec.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.FederatedIdentity) (managed.ExternalObservation, error) {
	err := ownership.CheckConflict(ctx, e.kube, &v1alpha1.FederatedIdentityList{}, v1alpha1.FederatedIdentityKind, mg, ownership.ByExternalName)
	if err != nil {
		return managed.ExternalObservation{}, ownership.IgnoreConflict(mg, err)
	}
	if xpmeta.WasDeleted(mg) {
		remaining, err := e.identities().Remaining(ctx, mg)
		return managed.ExternalObservation{ResourceExists: len(remaining) > 0, ResourceUpToDate: true}, err
	}
	details, err := secrets.Connection(ctx, e.kube, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	k, err := e.identities().Find(ctx, mg, mg.Status.AtProvider.ID)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if k == nil {
		mg.Status.AtProvider = v1alpha1.FederatedIdentityObservation{}
		return managed.ExternalObservation{ConnectionDetails: details}, nil
	}
	observe(mg, k)
	mg.SetConditions(xpv2.Available())
	maps.Copy(details, connection(k))
	d := diff(k, e.wanted(mg, k.Audience))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: d == "", ConnectionDetails: details, Diff: d}, nil
}

// identities returns the finder of the tailnet's federated identities.
func (e *external) identities() ownership.Credentials {
	return ownership.Credentials{API: e.api, ClusterID: e.clusterID, Singular: "federated identity", Type: tailscale.KeyTypeFederatedIdentity}
}

func observe(mg *v1alpha1.FederatedIdentity, k *tailscale.Key) {
	mg.Status.AtProvider = v1alpha1.FederatedIdentityObservation{
		ID:          k.ID,
		Description: k.Description,
		Issuer:      k.Issuer,
		Subject:     k.Subject,
		Audience:    k.Audience,
		Scopes:      tailscale.Sorted(k.Scopes),
		Tags:        tailscale.Sorted(k.Tags),
		Created:     &metav1.Time{Time: k.Created.UTC().Truncate(time.Second)},
	}
}

// wanted returns the identity that the object describes. It keeps the current audience, unless the
// spec sets one.
func (e *external) wanted(mg *v1alpha1.FederatedIdentity, audience string) tailscale.FederatedIdentityRequest {
	p := mg.Spec.ForProvider
	if p.Audience != "" {
		audience = p.Audience
	}
	return tailscale.FederatedIdentityRequest{
		Description:      ownership.Description(ownership.Marker(e.clusterID, mg), p.Description, mg),
		Issuer:           p.Issuer,
		Subject:          p.Subject,
		Audience:         audience,
		CustomClaimRules: p.CustomClaimRules,
		Scopes:           tailscale.Sorted(p.Scopes),
		Tags:             tailscale.Sorted(p.Tags),
	}
}

// diff returns the name of a field that differs, or "".
func diff(observed *tailscale.Key, want tailscale.FederatedIdentityRequest) string {
	switch {
	case observed.Description != want.Description:
		return "description"
	case observed.Issuer != want.Issuer:
		return "issuer"
	case observed.Subject != want.Subject:
		return "subject"
	case observed.Audience != want.Audience:
		return "audience"
	case !maps.Equal(observed.CustomClaimRules, want.CustomClaimRules):
		return "customClaimRules"
	case !slices.Equal(tailscale.Sorted(observed.Scopes), want.Scopes):
		return "scopes"
	case !slices.Equal(tailscale.Sorted(observed.Tags), want.Tags):
		return "tags"
	}
	return ""
}

// Create creates an identity, or records one that an earlier attempt created.
func (e *external) Create(ctx context.Context, mg *v1alpha1.FederatedIdentity) (managed.ExternalCreation, error) {
	ours, err := e.identities().Remaining(ctx, mg)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	if len(ours) > 0 {
		ownership.SetOwned(mg, ours[0].ID)
		return managed.ExternalCreation{ConnectionDetails: connection(&ours[0])}, e.identities().DeleteAll(ctx, ours[1:], e.api.DeleteFederatedIdentity)
	}
	k, err := e.api.CreateFederatedIdentity(ctx, e.wanted(mg, ""))
	if err != nil {
		return managed.ExternalCreation{}, errors.Wrap(err, "cannot create federated identity")
	}
	ownership.SetOwned(mg, k.ID)
	return managed.ExternalCreation{ConnectionDetails: connection(k)}, nil
}

// Update replaces all fields of the identity except for its ID.
func (e *external) Update(ctx context.Context, mg *v1alpha1.FederatedIdentity) (managed.ExternalUpdate, error) {
	id := xpmeta.GetExternalName(mg)
	want := e.wanted(mg, mg.Status.AtProvider.Audience)
	if err := e.api.SetFederatedIdentity(ctx, id, want); err != nil {
		return managed.ExternalUpdate{}, errors.Wrapf(err, "cannot set federated identity %q", id)
	}
	return managed.ExternalUpdate{ConnectionDetails: connection(&tailscale.Key{ID: id, Audience: want.Audience})}, nil
}

// Delete deletes every identity of the object.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.FederatedIdentity) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	ours, err := e.identities().Remaining(ctx, mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	return managed.ExternalDelete{}, e.identities().DeleteAll(ctx, ours, e.api.DeleteFederatedIdentity)
}

func connection(k *tailscale.Key) managed.ConnectionDetails {
	return managed.ConnectionDetails{meta.SecretKeyClientID: []byte(k.ID), keyAudience: []byte(k.Audience)}
}

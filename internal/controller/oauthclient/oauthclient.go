// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package oauthclient holds the controller of OAuthClients: credentials for Tailscale's API that
// the controller creates through the API. The controller finds a client by a marker in its
// description. It replaces a client whose secret was lost, because Tailscale returns a secret only
// once.
package oauthclient

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
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

const reasonReplacing event.Reason = "ReplacingOAuthClient"

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	ownership.CredentialsAPI

	CreateOAuthClient(ctx context.Context, r tailscale.OAuthClientRequest) (*tailscale.Key, error)
	SetOAuthClient(ctx context.Context, id string, r tailscale.OAuthClientRequest) error
	DeleteOAuthClient(ctx context.Context, id string) error
}

type external struct {
	kinds.NopDisconnect

	api       api
	kube      client.Reader
	record    event.Recorder
	clusterID string

	lost bool // Set by Observe if the secret of the client is lost.
}

// Observe compares the client in the shared list with the spec.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.OAuthClient) (managed.ExternalObservation, error) {
	if err := e.checkConflict(ctx, mg); err != nil {
		return managed.ExternalObservation{}, ownership.IgnoreConflict(mg, err)
	}
	if xpmeta.WasDeleted(mg) {
		remaining, err := e.clients().Remaining(ctx, mg)
		return managed.ExternalObservation{ResourceExists: len(remaining) > 0, ResourceUpToDate: true}, err
	}
	details, err := secrets.Connection(ctx, e.kube, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	k, err := e.clients().Find(ctx, mg, mg.Status.AtProvider.ID)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if k == nil {
		mg.Status.AtProvider = v1alpha1.OAuthClientObservation{}
		return managed.ExternalObservation{ConnectionDetails: details}, nil
	}
	observe(mg, k)
	stored := len(details[meta.SecretKeyClientSecret]) > 0 && string(details[meta.SecretKeyClientID]) == k.ID
	e.lost = !stored && secrets.Wanted(mg) && ownership.Manages(mg)
	if e.lost {
		mg.SetConditions(xpv2.Unavailable().WithMessage("The connection Secret lacks the client's secret; the client is replaced"))
		return managed.ExternalObservation{ConnectionDetails: details}, nil
	}
	ready := xpv2.Available()
	if !stored && ownership.Manages(mg) {
		ready = ready.WithMessage("The client's secret is kept nowhere; set spec.writeConnectionSecretToRef to have the client replaced by one whose secret is")
	}
	mg.SetConditions(ready)
	d := diff(k, e.wanted(mg))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: d == "", ConnectionDetails: details, Diff: d}, nil
}

// checkConflict returns an error if an older object names the same client.
func (e *external) checkConflict(ctx context.Context, mg *v1alpha1.OAuthClient) error {
	return ownership.CheckConflict(ctx, e.kube, &v1alpha1.OAuthClientList{}, v1alpha1.OAuthClientKind, mg, ownership.ByExternalName)
}

// clients returns the finder of the tailnet's OAuth clients.
func (e *external) clients() ownership.Credentials {
	return ownership.Credentials{API: e.api, ClusterID: e.clusterID, Singular: "OAuth client", Type: tailscale.KeyTypeOAuthClient}
}

func observe(mg *v1alpha1.OAuthClient, k *tailscale.Key) {
	mg.Status.AtProvider = v1alpha1.OAuthClientObservation{
		ID:          k.ID,
		Description: k.Description,
		Scopes:      tailscale.Sorted(k.Scopes),
		Tags:        tailscale.Sorted(k.Tags),
		Created:     &metav1.Time{Time: k.Created.UTC().Truncate(time.Second)},
	}
}

// wanted returns the client that the object describes.
func (e *external) wanted(mg *v1alpha1.OAuthClient) tailscale.OAuthClientRequest {
	p := mg.Spec.ForProvider
	return tailscale.OAuthClientRequest{
		Description: ownership.Description(ownership.Marker(e.clusterID, mg), p.Description, mg),
		Scopes:      tailscale.Sorted(p.Scopes),
		Tags:        tailscale.Sorted(p.Tags),
	}
}

// diff returns the name of a field that differs, or "".
func diff(observed *tailscale.Key, want tailscale.OAuthClientRequest) string {
	switch {
	case observed.Description != want.Description:
		return "description"
	case !slices.Equal(tailscale.Sorted(observed.Scopes), want.Scopes):
		return "scopes"
	case !slices.Equal(tailscale.Sorted(observed.Tags), want.Tags):
		return "tags"
	}
	return ""
}

// Create creates a client. It first deletes existing clients of the object, because their secrets
// are lost.
func (e *external) Create(ctx context.Context, mg *v1alpha1.OAuthClient) (managed.ExternalCreation, error) {
	if e.lost {
		e.record.Event(mg, event.Normal(reasonReplacing, "Replacing OAuth client "+xpmeta.GetExternalName(mg)+", whose secret the connection Secret lacks"))
	}
	if err := e.deleteAll(ctx, mg); err != nil {
		return managed.ExternalCreation{}, err
	}
	k, err := e.api.CreateOAuthClient(ctx, e.wanted(mg))
	if err != nil {
		return managed.ExternalCreation{}, errors.Wrap(err, "cannot create OAuth client")
	}
	ownership.SetOwned(mg, k.ID)
	return managed.ExternalCreation{ConnectionDetails: managed.ConnectionDetails{
		meta.SecretKeyClientID:     []byte(k.ID),
		meta.SecretKeyClientSecret: []byte(k.Key),
	}}, nil
}

// Update replaces the description, scopes and tags.
func (e *external) Update(ctx context.Context, mg *v1alpha1.OAuthClient) (managed.ExternalUpdate, error) {
	id := xpmeta.GetExternalName(mg)
	if err := e.api.SetOAuthClient(ctx, id, e.wanted(mg)); err != nil {
		return managed.ExternalUpdate{}, errors.Wrapf(err, "cannot set OAuth client %q", id)
	}
	details, err := secrets.Connection(ctx, e.kube, mg)
	return managed.ExternalUpdate{ConnectionDetails: details}, err
}

// Delete deletes every client of the object.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.OAuthClient) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	return managed.ExternalDelete{}, e.deleteAll(ctx, mg)
}

func (e *external) deleteAll(ctx context.Context, mg *v1alpha1.OAuthClient) error {
	ours, err := e.clients().Remaining(ctx, mg)
	if err != nil {
		return err
	}
	return e.clients().DeleteAll(ctx, ours, e.api.DeleteOAuthClient)
}

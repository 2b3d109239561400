// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook holds the controller of Webhooks. Tailscale's webhooks have no field for a
// marker. So the controller finds a webhook by its ID, and by its URL until the ID is recorded.
package webhook

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
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/ownership"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Keys of the connection Secret.
const (
	keyID     = "id"
	keySecret = "secret"
)

const reasonRotated event.Reason = "RotatedWebhookSecret"

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	Webhooks(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Webhook, error)
	Webhook(ctx context.Context, id string) (*tailscale.Webhook, error)
	CreateWebhook(ctx context.Context, url, providerType string, subscriptions []string) (*tailscale.Webhook, error)
	SetWebhookSubscriptions(ctx context.Context, id string, subscriptions []string) error
	RotateWebhookSecret(ctx context.Context, id string) (string, error)
	DeleteWebhook(ctx context.Context, id string) error
}

type external struct {
	kinds.NopDisconnect

	api    api
	kube   client.Reader
	record event.Recorder

	rotate bool   // Set by Observe if the connection Secret lacks the secret.
	ours   string // Set by Observe: the ID of the object's webhook that Create must record.
}

// Observe compares the webhook in the shared list with the spec.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Webhook) (managed.ExternalObservation, error) {
	if xpmeta.WasDeleted(mg) {
		return e.observeDeleted(ctx, mg)
	}
	if err := e.checkConflict(ctx, mg); err != nil {
		return managed.ExternalObservation{}, err
	}
	details, err := secrets.Connection(ctx, e.kube, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	w, err := e.webhooks(mg).Find(ctx, mg, tailscale.Cached)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if w == nil {
		mg.Status.AtProvider = v1alpha1.WebhookObservation{}
		return managed.ExternalObservation{ConnectionDetails: details}, nil
	}
	if xpmeta.GetExternalName(mg) != w.EndpointID && ownership.Manages(mg) {
		if err := e.webhooks(mg).MayManage(mg, w.EndpointID); err != nil {
			return managed.ExternalObservation{}, err
		}
		// Only Create can record the ID.
		e.ours = w.EndpointID
		return managed.ExternalObservation{ConnectionDetails: details}, nil
	}
	observe(mg, w)
	if err := unchangeable(mg, w); err != nil {
		return managed.ExternalObservation{}, err
	}
	mg.SetConditions(xpv2.Available())
	e.rotate = ownership.Manages(mg) && secrets.Wanted(mg) && (len(details[keySecret]) == 0 || string(details[keyID]) != w.EndpointID)
	diff := ""
	if !slices.Equal(subscriptions(mg), tailscale.Sorted(w.Subscriptions)) {
		diff = "subscriptions"
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: diff == "" && !e.rotate, ConnectionDetails: details, Diff: diff}, nil
}

func (e *external) observeDeleted(ctx context.Context, mg *v1alpha1.Webhook) (managed.ExternalObservation, error) {
	if err := e.checkConflict(ctx, mg); err != nil {
		return managed.ExternalObservation{}, ownership.IgnoreConflict(mg, err)
	}
	id, err := e.webhooks(mg).FindOwned(ctx, mg)
	return managed.ExternalObservation{ResourceExists: id != "", ResourceUpToDate: true}, err
}

func (e *external) checkConflict(ctx context.Context, mg *v1alpha1.Webhook) error {
	return ownership.CheckConflict(ctx, e.kube, &v1alpha1.WebhookList{}, v1alpha1.WebhookKind, mg, func(o resource.Managed) string {
		if w, ok := o.(*v1alpha1.Webhook); ok {
			return "webhook to " + w.Spec.ForProvider.EndpointURL
		}
		return ""
	})
}

// webhooks returns the finder of the webhook with the object's external name, or otherwise with its
// URL.
func (e *external) webhooks(mg *v1alpha1.Webhook) ownership.Lookup[tailscale.Webhook] {
	return ownership.Lookup[tailscale.Webhook]{
		Singular: "webhook",
		Plural:   "webhooks",
		List:     e.api.Webhooks,
		ID:       func(w tailscale.Webhook) string { return w.EndpointID },
		Get:      e.api.Webhook,
		Like:     func(w tailscale.Webhook) bool { return w.EndpointURL == mg.Spec.ForProvider.EndpointURL },
		Recorded: mg.Status.AtProvider.ID,
		Adopt:    mg.Spec.ForProvider.AdoptionPolicy == v1alpha1.AdoptionPolicyAdopt,
		Exists:   "webhook %q to this URL",
	}
}

// unchangeable returns an error if the webhook differs in fields that Tailscale cannot change.
func unchangeable(mg *v1alpha1.Webhook, w *tailscale.Webhook) error {
	p := mg.Spec.ForProvider
	if !ownership.Manages(mg) || (w.EndpointURL == p.EndpointURL && string(w.ProviderType) == p.ProviderType) {
		return nil
	}
	return ownership.NotOwned(mg, "webhook %q has the URL %q and the provider type %q, which Tailscale cannot change; say the same in the spec, or delete the webhook",
		w.EndpointID, w.EndpointURL, w.ProviderType)
}

func observe(mg *v1alpha1.Webhook, w *tailscale.Webhook) {
	mg.Status.AtProvider = v1alpha1.WebhookObservation{
		ID:            w.EndpointID,
		EndpointURL:   w.EndpointURL,
		ProviderType:  string(w.ProviderType),
		Subscriptions: tailscale.Sorted(w.Subscriptions),
		Creator:       w.CreatorLoginName,
		Created:       &metav1.Time{Time: w.Created.UTC().Truncate(time.Second)},
	}
}

// Create creates a webhook, or records one that already belongs to the object.
func (e *external) Create(ctx context.Context, mg *v1alpha1.Webhook) (managed.ExternalCreation, error) {
	if recorded, err := e.webhooks(mg).Record(ctx, mg, e.ours); recorded || err != nil {
		return managed.ExternalCreation{}, err
	}
	p := mg.Spec.ForProvider
	w, err := e.api.CreateWebhook(ctx, p.EndpointURL, p.ProviderType, subscriptions(mg))
	if err != nil {
		return managed.ExternalCreation{}, errors.Wrap(err, "cannot create webhook")
	}
	ownership.SetOwned(mg, w.EndpointID)
	if w.Secret == nil {
		return managed.ExternalCreation{}, nil
	}
	return managed.ExternalCreation{ConnectionDetails: connection(w.EndpointID, *w.Secret)}, nil
}

// Update replaces the subscriptions, and the secret if it was lost.
func (e *external) Update(ctx context.Context, mg *v1alpha1.Webhook) (managed.ExternalUpdate, error) {
	id := xpmeta.GetExternalName(mg)
	if !slices.Equal(subscriptions(mg), mg.Status.AtProvider.Subscriptions) {
		if err := e.api.SetWebhookSubscriptions(ctx, id, subscriptions(mg)); err != nil {
			return managed.ExternalUpdate{}, errors.Wrapf(err, "cannot set the subscriptions of webhook %q", id)
		}
	}
	if !e.rotate {
		details, err := secrets.Connection(ctx, e.kube, mg)
		return managed.ExternalUpdate{ConnectionDetails: details}, err
	}
	secret, err := e.api.RotateWebhookSecret(ctx, id)
	if err != nil {
		return managed.ExternalUpdate{}, errors.Wrapf(err, "cannot rotate the secret of webhook %q", id)
	}
	e.record.Event(mg, event.Normal(reasonRotated, "Rotated the secret of webhook "+id+", which the connection Secret lacked"))
	return managed.ExternalUpdate{ConnectionDetails: connection(id, secret)}, nil
}

// Delete deletes the webhook.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.Webhook) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	id, err := e.webhooks(mg).FindOwned(ctx, mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	return managed.ExternalDelete{}, e.webhooks(mg).Delete(ctx, id, e.api.DeleteWebhook)
}

func connection(id, secret string) managed.ConnectionDetails {
	return managed.ConnectionDetails{keyID: []byte(id), keySecret: []byte(secret)}
}

func subscriptions(mg *v1alpha1.Webhook) []string {
	return tailscale.Sorted(mg.Spec.ForProvider.Subscriptions)
}

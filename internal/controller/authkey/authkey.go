// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package authkey holds the controller of AuthKeys: auth keys for nodes that the product does not
// run. The controller creates a key in the connection Secret, replaces it before it expires or on
// request, and revokes it when the object is deleted. Keys of nodes that the product runs belong to
// their Machine; see internal/controller/machine.
package authkey

import (
	"context"
	"slices"
	"strings"
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
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// AnnotationReissue requests another key: the controller creates one for each new value.
const AnnotationReissue = "gateway.tailscale.com/reissue"

// Reasons of events.
const (
	reasonIssued  event.Reason = "IssuedAuthKey"
	reasonRevoked event.Reason = "RevokedAuthKey"

	reasonKeyRefused event.Reason = "RefusedAuthKey"
)

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	AuthKeys(ctx context.Context, staleness tailscale.Staleness) ([]tailscale.Key, error)
	AuthKey(ctx context.Context, id string) (*tailscale.Key, error)
	CreateAuthKey(ctx context.Context, r tailscale.AuthKeyRequest) (*tailscale.Key, error)
	RevokeAuthKey(ctx context.Context, id string) error
}

type external struct {
	kinds.NopDisconnect

	api       api
	clusterID string
	tags      []string // Tags of the provider config.
	kube      client.Client
	record    event.Recorder
	clock     func() time.Time
}

// Observe compares the object with its key in the shared list and in the connection Secret.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.AuthKey) (managed.ExternalObservation, error) {
	if xpmeta.WasDeleted(mg) {
		ids, err := e.remaining(ctx, mg)
		return managed.ExternalObservation{ResourceExists: len(ids) > 0, ResourceUpToDate: true}, err
	}
	f, err := e.facts(ctx, mg)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	p := makePlan(mg, f)
	details := managed.ConnectionDetails{}
	if f.secret != nil {
		// Return the Secret's current data, so that it is not written again.
		details = f.secret.Data
	}
	if p.current == nil {
		// While the last key is too new, no other key is created.
		exists := p.later && !observesOnly(mg)
		if exists {
			mg.SetConditions(xpv2.Unavailable().WithMessage("The key was revoked; another one is minted shortly"))
		}
		return managed.ExternalObservation{ResourceExists: exists, ResourceUpToDate: exists, ConnectionDetails: details}, nil
	}
	report(mg, *p.current, p.used, f.issued.reissued)
	mg.SetConditions(ready(mg, p))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: p.done(), ConnectionDetails: details, Diff: p.issue}, nil
}

// facts collects the inputs of a plan. Keys come from the shared list. Only a recorded key that is
// missing from the list needs another request.
func (e *external) facts(ctx context.Context, mg *v1alpha1.AuthKey) (facts, error) {
	s, err := getSecret(ctx, e.kube, mg)
	if err != nil {
		return facts{}, err
	}
	valid, err := e.api.AuthKeys(ctx, tailscale.Cached)
	if err != nil {
		return facts{}, errors.Wrap(err, "cannot list auth keys")
	}
	f := facts{
		externalName: xpmeta.GetExternalName(mg),
		secret:       s,
		valid:        valid,
		prefix:       descriptionPrefix(e.clusterID, mg),
		request:      wanted(e.clusterID, e.tags, mg),
		at:           e.clock(),
	}
	if f.issued, err = e.confirmed(ctx, mg, f, issuedIn(s)); err != nil {
		return facts{}, err
	}
	id, _ := recordedID(f.externalName, f.issued)
	f.recorded, err = e.recorded(ctx, mg, valid, id)
	return f, err
}

// confirmed returns what a connection Secret says about its key. Anyone with Kubernetes' role edit in
// the namespace can write that, so a key that is not the external name counts only if the API says
// that it has a description of the object's keys.
func (e *external) confirmed(ctx context.Context, mg *v1alpha1.AuthKey, f facts, issuance issued) (issued, error) {
	if issuance.id == "" || issuance.id == f.externalName {
		return issuance, nil
	}
	ours := func(k tailscale.Key) bool {
		return k.ID == issuance.id && tailscale.IsAuthKey(k) && strings.HasPrefix(k.Description, f.prefix)
	}
	if slices.ContainsFunc(f.valid, ours) {
		return issuance, nil
	}
	if tailscale.ValidKeyID(issuance.id) {
		k, err := e.api.AuthKey(ctx, issuance.id)
		if err == nil && ours(*k) {
			return issuance, nil
		}
		if err != nil && !tailscale.IsNotFound(err) {
			return issued{}, errors.Wrapf(err, "cannot get auth key %q", issuance.id)
		}
	}
	e.record.Event(mg, event.Warning(reasonKeyRefused, errors.Errorf("key %q, which the connection Secret names, is left: it is not one of this object's", tailscale.OneLine(issuance.id))))
	return issued{at: issuance.at, reissued: issuance.reissued}, nil
}

// recorded returns the key with the ID, or nil if it does not exist. Tailscale returns keys that
// are no longer valid only by their ID.
func (e *external) recorded(ctx context.Context, mg *v1alpha1.AuthKey, valid []tailscale.Key, id string) (*tailscale.Key, error) {
	if id == "" {
		return nil, nil // No key is a valid result.
	}
	if i := slices.IndexFunc(valid, func(k tailscale.Key) bool { return k.ID == id }); i >= 0 {
		return &valid[i], nil
	}
	if remembersUse(mg, id) {
		return remembered(mg.Status.AtProvider), nil
	}
	k, err := e.api.AuthKey(ctx, id)
	if tailscale.IsNotFound(err) {
		return nil, nil // No key is a valid result.
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get auth key %q", id)
	}
	if !tailscale.IsAuthKey(*k) {
		return nil, errors.Errorf("key %q is of the type %q and not an auth key; correct the annotation %s", id, k.KeyType, xpmeta.AnnotationKeyExternalName)
	}
	return k, nil
}

// Create creates a key.
func (e *external) Create(ctx context.Context, mg *v1alpha1.AuthKey) (managed.ExternalCreation, error) {
	f, err := e.facts(ctx, mg)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	p := makePlan(mg, f)
	if p.current != nil {
		// The key is valid again: the next observation handles it.
		return managed.ExternalCreation{}, nil
	}
	k, err := e.issue(ctx, mg, f, p)
	if k == nil {
		return managed.ExternalCreation{}, err
	}
	xpmeta.SetExternalName(mg, k.ID)
	return managed.ExternalCreation{ConnectionDetails: managed.ConnectionDetails{secretKey: []byte(k.Key)}}, err
}

// Update creates a key if necessary, and revokes keys that are no longer needed. It collects the
// facts again, because the object may have changed since it was observed.
func (e *external) Update(ctx context.Context, mg *v1alpha1.AuthKey) (managed.ExternalUpdate, error) {
	f, err := e.facts(ctx, mg)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	p := makePlan(mg, f)
	if p.issue != "" && !p.later {
		k, err := e.issue(ctx, mg, f, p)
		if err != nil {
			return managed.ExternalUpdate{}, err
		}
		u := managed.ExternalUpdate{ConnectionDetails: managed.ConnectionDetails{secretKey: []byte(k.Key)}}
		return u, e.rename(ctx, mg, k.ID)
	}
	u := managed.ExternalUpdate{}
	if f.secret != nil {
		u.ConnectionDetails = f.secret.Data
	}
	// The external name changes last, because a key that was adopted has no other record.
	if err := e.revoke(ctx, mg, p.revoke); err != nil || !p.rename {
		return u, err
	}
	return u, e.rename(ctx, mg, p.current.ID)
}

// issue creates a key, records it in the connection Secret, and then revokes the previous keys. A
// key that could not be recorded is found by its description, and revoked before another one is
// created. If an error occurs after the key was recorded, issue returns the key and the error.
func (e *external) issue(ctx context.Context, mg *v1alpha1.AuthKey, f facts, p plan) (*tailscale.Key, error) {
	if mg.GetWriteConnectionSecretToReference() == nil {
		return nil, errors.New("spec.writeConnectionSecretToRef is not set: Tailscale shows a key only once, and it would be lost")
	}
	issuance := issued{
		at:       f.at,
		request:  fingerprint(f.request),
		reissued: mg.GetAnnotations()[AnnotationReissue],
		replaced: f.externalName,
	}
	// Do not create a key that cannot be recorded, because each retry would create another one.
	if err := writeSecret(ctx, client.NewDryRunClient(e.kube), mg, &tailscale.Key{}, issuance); err != nil {
		return nil, err
	}
	if err := e.revoke(ctx, mg, orphanedKeys(f)); err != nil {
		return nil, err
	}
	k, err := e.api.CreateAuthKey(ctx, f.request)
	if err != nil {
		return nil, errors.Wrap(err, "cannot create auth key")
	}
	if err := writeSecret(ctx, e.kube, mg, k, issuance); err != nil {
		// The key's secret is not recorded. If revoking fails, the next attempt finds the key.
		return nil, errors.Join(err, e.revoke(ctx, mg, []string{k.ID}))
	}
	report(mg, *k, false, issuance.reissued)
	mg.SetConditions(xpv2.Available())
	e.record.Event(mg, event.Normal(reasonIssued, "Issued auth key "+k.ID+": "+p.issue))
	// The old list lacks the new key, so all keys of the object in the list can be revoked.
	return k, e.revoke(ctx, mg, others(f, k.ID))
}

// rename sets the external name to a key's ID. It patches the object, because the managed
// reconciler drops changes that Update makes to an object. It keeps the status, which is written
// later.
func (e *external) rename(ctx context.Context, mg *v1alpha1.AuthKey, id string) error {
	if xpmeta.GetExternalName(mg) == id {
		return nil
	}
	renamed := mg.DeepCopy()
	xpmeta.SetExternalName(renamed, id)
	if err := e.kube.Patch(ctx, renamed, client.MergeFrom(mg)); err != nil {
		return errors.Wrap(err, "cannot set the external name")
	}
	mg.ObjectMeta = renamed.ObjectMeta
	return nil
}

func (e *external) revoke(ctx context.Context, mg *v1alpha1.AuthKey, ids []string) error {
	for _, id := range ids {
		if err := e.api.RevokeAuthKey(ctx, id); err != nil {
			return errors.Wrapf(err, "cannot revoke auth key %q", id)
		}
		e.record.Event(mg, event.Normal(reasonRevoked, "Revoked auth key "+id))
	}
	return nil
}

// Delete revokes every key of the object.
func (e *external) Delete(ctx context.Context, mg *v1alpha1.AuthKey) (managed.ExternalDelete, error) {
	mg.SetConditions(xpv2.Deleting())
	ids, err := e.remaining(ctx, mg)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	return managed.ExternalDelete{}, e.revoke(ctx, mg, ids)
}

// remaining returns the valid keys of an object that is being deleted. Other keys need no
// revocation.
func (e *external) remaining(ctx context.Context, mg *v1alpha1.AuthKey) ([]string, error) {
	valid, err := e.api.AuthKeys(ctx, tailscale.Recent)
	if err != nil {
		return nil, errors.Wrap(err, "cannot list auth keys")
	}
	f := facts{externalName: xpmeta.GetExternalName(mg), valid: valid, prefix: descriptionPrefix(e.clusterID, mg)}
	return others(f, ""), nil
}

// report sets the status.
func report(mg *v1alpha1.AuthKey, k tailscale.Key, used bool, reissued string) {
	tags := slices.Clone(k.Capabilities.Devices.Create.Tags)
	if len(tags) == 0 {
		tags = slices.Clone(k.Tags)
	}
	slices.Sort(tags)
	o := v1alpha1.AuthKeyObservation{ID: k.ID, Tags: tags, Used: used, Reissued: reissued}
	if !k.Created.IsZero() {
		o.Created = &metav1.Time{Time: k.Created.UTC().Truncate(time.Second)}
	}
	if !k.Expires.IsZero() {
		o.Expires = &metav1.Time{Time: k.Expires.UTC().Truncate(time.Second)}
	}
	mg.Status.AtProvider = o
}

// remembered returns the used key in a status.
func remembered(o v1alpha1.AuthKeyObservation) *tailscale.Key {
	k := &tailscale.Key{ID: o.ID, Invalid: true}
	k.Capabilities.Devices.Create.Tags = o.Tags
	if o.Created != nil {
		k.Created = o.Created.Time
	}
	if o.Expires != nil {
		k.Expires = o.Expires.Time
	}
	return k
}

func ready(mg *v1alpha1.AuthKey, p plan) xpv2.Condition {
	switch {
	case p.lost && !observesOnly(mg):
		return xpv2.Unavailable().WithMessage("The connection Secret lacks the key; another one is minted shortly")
	case p.used && p.issue == "":
		return xpv2.Available().WithMessage("The key has logged in its node; for another one change the annotation " + AnnotationReissue)
	}
	return xpv2.Available()
}

// observesOnly reports whether the object must not create keys.
func observesOnly(mg *v1alpha1.AuthKey) bool {
	minting := []xpv2.ManagementAction{xpv2.ManagementActionAll, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate}
	return len(mg.GetManagementPolicies()) > 0 && !slices.ContainsFunc(mg.GetManagementPolicies(), func(a xpv2.ManagementAction) bool {
		return slices.Contains(minting, a)
	})
}

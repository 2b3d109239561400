// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package authkey holds the controller of AuthKeys: keys for nodes that others
// run. It mints a key into the connection Secret, replaces it before it expires
// or when asked, and revokes it at the end. Keys of nodes that we run are their
// Machine's; see internal/controller/machine.
package authkey

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
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// AnnotationReissue asks for another key: one is minted for each new value.
const AnnotationReissue = "gateway.tailscale.com/reissue"

// Reasons of events.
const (
	reasonIssued  event.Reason = "IssuedAuthKey"
	reasonRevoked event.Reason = "RevokedAuthKey"
)

// api is what this controller needs of a tailnet.
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
	tags      []string // Of the provider config.
	kube      client.Client
	record    event.Recorder
	now       func() time.Time
}

// Observe the object's key in the shared list and in the connection Secret.
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
		// What the Secret has already, so that it is not written again.
		details = f.secret.Data
	}
	if p.current == nil {
		// While the last key is too young, nothing is created.
		exists := p.later && !observesOnly(mg)
		if exists {
			mg.SetConditions(xpv2.Unavailable().WithMessage("The key was revoked; another one is minted shortly"))
		}
		return managed.ExternalObservation{ResourceExists: exists, ResourceUpToDate: exists, ConnectionDetails: details}, nil
	}
	report(mg, *p.current, p.used, issuedIn(f.secret).reissued)
	mg.SetConditions(ready(mg, p))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: p.done(), ConnectionDetails: details, Diff: p.issue}, nil
}

// facts gathers what a plan is made of. Keys come from the shared list, and
// only the one that should be there and is not is asked for.
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
		now:          e.now(),
	}
	id, _ := recordedID(f.externalName, s)
	f.recorded, err = e.recorded(ctx, mg, valid, id)
	return f, err
}

// recorded returns the key with the ID, nil if there is none. Tailscale tells of
// keys that are no longer valid one by one only.
func (e *external) recorded(ctx context.Context, mg *v1alpha1.AuthKey, valid []tailscale.Key, id string) (*tailscale.Key, error) {
	if id == "" {
		return nil, nil // None is an answer.
	}
	if i := slices.IndexFunc(valid, func(k tailscale.Key) bool { return k.ID == id }); i >= 0 {
		return &valid[i], nil
	}
	if remembersUse(mg, id) {
		return remembered(mg.Status.AtProvider), nil
	}
	k, err := e.api.AuthKey(ctx, id)
	if tailscale.IsNotFound(err) {
		return nil, nil // None is an answer.
	}
	if err != nil {
		return nil, errors.Wrapf(err, "cannot get auth key %q", id)
	}
	if !tailscale.IsAuthKey(*k) {
		return nil, errors.Errorf("key %q is of the type %q and not an auth key; correct the annotation %s", id, k.KeyType, xpmeta.AnnotationKeyExternalName)
	}
	return k, nil
}

// Create a key.
func (e *external) Create(ctx context.Context, mg *v1alpha1.AuthKey) (managed.ExternalCreation, error) {
	f, err := e.facts(ctx, mg)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	p := makePlan(mg, f)
	if p.current != nil {
		// It came back meanwhile: the next observation sees to it.
		return managed.ExternalCreation{}, nil
	}
	k, err := e.issue(ctx, mg, f, p)
	if k == nil {
		return managed.ExternalCreation{}, err
	}
	xpmeta.SetExternalName(mg, k.ID)
	return managed.ExternalCreation{ConnectionDetails: managed.ConnectionDetails{secretKey: []byte(k.Key)}}, err
}

// Update mints a key if it must, and revokes keys that nobody needs. It decides
// from fresh facts: the object may have changed since it was observed.
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
	if p.rename {
		if err := e.rename(ctx, mg, p.current.ID); err != nil {
			return u, err
		}
	}
	return u, e.revoke(ctx, mg, p.revoke)
}

// issue mints a key, records it in the connection Secret, and then revokes those
// before it. A key whose record was lost is found again by its description, and revoked
// before another one is minted. With an error it returns the key if that was recorded.
func (e *external) issue(ctx context.Context, mg *v1alpha1.AuthKey, f facts, p plan) (*tailscale.Key, error) {
	if mg.GetWriteConnectionSecretToReference() == nil {
		return nil, errors.New("spec.writeConnectionSecretToRef is not set: Tailscale shows a key only once, and it would be lost")
	}
	in := issued{
		at:       f.now,
		request:  fingerprint(f.request),
		reissued: mg.GetAnnotations()[AnnotationReissue],
		replaced: f.externalName,
	}
	// A key that cannot be written down is not minted, else each retry makes another.
	if err := writeSecret(ctx, client.NewDryRunClient(e.kube), mg, &tailscale.Key{}, in); err != nil {
		return nil, err
	}
	if err := e.revoke(ctx, mg, orphanedKeys(f)); err != nil {
		return nil, err
	}
	k, err := e.api.CreateAuthKey(ctx, f.request)
	if err != nil {
		return nil, errors.Wrap(err, "cannot create auth key")
	}
	if err := writeSecret(ctx, e.kube, mg, k, in); err != nil {
		// Nobody knows the key. If it cannot be revoked now, the next attempt finds it.
		return nil, errors.Join(err, e.revoke(ctx, mg, []string{k.ID}))
	}
	report(mg, *k, false, in.reissued)
	mg.SetConditions(xpv2.Available())
	e.record.Event(mg, event.Normal(reasonIssued, "Issued auth key "+k.ID+": "+p.issue))
	// The list of before lacks the new key, so all of ours in it can go.
	return k, e.revoke(ctx, mg, others(f, k.ID, issuedIn(f.secret)))
}

// rename makes a key's ID the external name. It writes it at once: an update's
// changes to an object are dropped. The status is kept, which is written later.
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

// remaining returns the valid keys of an object that is being deleted. Others need no
// revoking.
func (e *external) remaining(ctx context.Context, mg *v1alpha1.AuthKey) ([]string, error) {
	s, err := getSecret(ctx, e.kube, mg)
	if err != nil {
		return nil, err
	}
	valid, err := e.api.AuthKeys(ctx, tailscale.Recent)
	if err != nil {
		return nil, errors.Wrap(err, "cannot list auth keys")
	}
	f := facts{externalName: xpmeta.GetExternalName(mg), valid: valid, prefix: descriptionPrefix(e.clusterID, mg)}
	return others(f, "", issuedIn(s)), nil
}

// report fills in the status.
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

// remembered returns the used key that a status names.
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

// observesOnly reports whether the object must not mint keys.
func observesOnly(mg *v1alpha1.AuthKey) bool {
	minting := []xpv2.ManagementAction{xpv2.ManagementActionAll, xpv2.ManagementActionCreate, xpv2.ManagementActionUpdate}
	return len(mg.GetManagementPolicies()) > 0 && !slices.ContainsFunc(mg.GetManagementPolicies(), func(a xpv2.ManagementAction) bool {
		return slices.Contains(minting, a)
	})
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package contacts holds the controller of Contacts: the addresses to which Tailscale sends email
// about a tailnet. The controller changes only contacts that the object names, and deletes none.
package contacts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Types of contacts with their names in the API and the spec.
const (
	account  = "account"
	support  = "support"
	security = "security"
)

// An api is the part of a tailnet's client that this controller uses.
type api interface {
	Domain(ctx context.Context) (string, error)
	Contacts(ctx context.Context, staleness tailscale.Staleness) (tailscale.Contacts, error)
	SetContact(ctx context.Context, contact, email string) error
}

type external struct {
	kinds.NopDisconnect

	api  api
	kube client.Client
}

// A change is a contact with its desired address.
type change struct{ contact, email string }

// A view describes a tailnet's contacts, and the resulting changes.
type view struct {
	changes []change
	lost    map[string]contention.Contender

	// unverified are the addresses that must be verified, with the contact's type, sorted.
	unverified []string
}

// Observe compares the contacts with the spec.
func (e *external) Observe(ctx context.Context, mg *v1alpha1.Contacts) (managed.ExternalObservation, error) {
	v, err := e.look(ctx, mg, 0)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if !contention.Writes(mg) {
		mg.SetConditions(xpv2.Available())
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	if len(v.changes) > 0 {
		return managed.ExternalObservation{ResourceExists: !contention.NeedsFirstWrite(mg)}, nil
	}
	mg.SetConditions(v.ready())
	if err := v.blocked(); err != nil {
		return managed.ExternalObservation{}, err
	}
	if contention.NeedsFirstWrite(mg) {
		return managed.ExternalObservation{}, nil
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// Create changes the contacts for the first time. The next observation reports contacts that it
// could not change.
func (e *external) Create(ctx context.Context, mg *v1alpha1.Contacts) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, e.put(ctx, mg)
}

// Update changes the contacts that differ from the spec.
func (e *external) Update(ctx context.Context, mg *v1alpha1.Contacts) (managed.ExternalUpdate, error) {
	if err := e.put(ctx, mg); err != nil {
		return managed.ExternalUpdate{}, err
	}
	v, err := e.look(ctx, mg, 0)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	mg.SetConditions(v.ready())
	return managed.ExternalUpdate{}, v.blocked()
}

// put writes only contacts that differ, because Tailscale sends an email for each change.
func (e *external) put(ctx context.Context, mg *v1alpha1.Contacts) error {
	v, err := e.look(ctx, mg, tailscale.Current)
	if err != nil {
		return err
	}
	for _, c := range v.changes {
		if err := e.api.SetContact(ctx, c.contact, c.email); err != nil {
			return errors.Wrapf(err, "cannot set the %s contact", c.contact)
		}
	}
	return nil
}

// Delete leaves the contacts unchanged, because a tailnet must have them.
func (e *external) Delete(context.Context, *v1alpha1.Contacts) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

// look reads the contacts into the object's status.
func (e *external) look(ctx context.Context, mg *v1alpha1.Contacts, staleness tailscale.Staleness) (view, error) {
	all, err := e.api.Contacts(ctx, staleness)
	if err != nil {
		return view{}, errors.Wrap(err, "cannot get contacts")
	}
	o := &mg.Status.AtProvider
	o.Account, o.Support, o.Security = observation(all.Account), observation(all.Support), observation(all.Security)
	// The domain is optional, because the credential may have no access to devices. It is used only
	// to find objects that reach the same tailnet through another config.
	if domain, err := e.api.Domain(ctx); err == nil && domain != "" {
		o.Tailnet = domain
	}
	lost, err := e.conflicts(ctx, mg)
	if err != nil {
		return view{}, err
	}
	v := view{lost: lost}
	current := map[string]*v1alpha1.ContactObservation{account: o.Account, support: o.Support, security: o.Security}
	for _, w := range wanted(mg.Spec.ForProvider) {
		if _, ok := lost[w.contact]; ok {
			continue
		}
		c := current[w.contact]
		if !strings.EqualFold(c.Email, w.email) {
			v.changes = append(v.changes, w)
		}
		if c.NeedsVerification {
			v.unverified = append(v.unverified, w.contact)
		}
	}
	return v, nil
}

// conflicts returns the contacts that belong to older objects.
func (e *external) conflicts(ctx context.Context, mg *v1alpha1.Contacts) (map[string]contention.Contender, error) {
	l := &v1alpha1.ContactsList{}
	if err := e.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrap(err, "cannot list Contacts")
	}
	var others []contention.Contender
	for i := range l.Items {
		if o := &l.Items[i]; contention.Writes(o) {
			others = append(others, contention.New(o, o.Status.AtProvider.Tailnet, names(o)...))
		}
	}
	return contention.Conflicts(contention.New(mg, mg.Status.AtProvider.Tailnet, names(mg)...), others), nil
}

func names(mg *v1alpha1.Contacts) []string {
	var out []string
	for _, w := range wanted(mg.Spec.ForProvider) {
		out = append(out, w.contact)
	}
	return out
}

// wanted returns the contacts in a spec, in a fixed order.
func wanted(p v1alpha1.ContactsParameters) []change {
	var out []change
	for _, c := range []struct {
		contact string
		email   *v1alpha1.ContactEmail
	}{{account, p.Account}, {support, p.Support}, {security, p.Security}} {
		if c.email != nil {
			out = append(out, change{c.contact, string(*c.email)})
		}
	}
	return out
}

func observation(c tailscale.Contact) *v1alpha1.ContactObservation {
	return &v1alpha1.ContactObservation{Email: c.Email, FallbackEmail: c.FallbackEmail, NeedsVerification: c.NeedsVerification}
}

// blocked returns an error if some contacts belong to older objects.
func (v view) blocked() error {
	if m := contention.Message(v1alpha1.ContactsKind, v.lost); m != "" {
		return errors.New(m)
	}
	return nil
}

// ready returns the Ready condition of an object without further changes. An address that is not
// verified does not make the object unready.
func (v view) ready() xpv2.Condition {
	if err := v.blocked(); err != nil {
		return contention.NotReady(meta.ReasonConflict, err.Error())
	}
	if len(v.unverified) > 0 {
		slices.Sort(v.unverified)
		return xpv2.Available().WithMessage(fmt.Sprintf("Somebody must follow the link in the email that Tailscale sent to the address of: %s", strings.Join(v.unverified, ", ")))
	}
	return xpv2.Available()
}

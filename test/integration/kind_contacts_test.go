// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"k8s.io/utils/ptr"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(contactsCase()) }

func contactsCase() kindCase[*v1alpha1.Contacts] {
	set := func(e *env, kind tsclient.ContactType, email string) {
		e.must(e.tailnet.Contacts().Update(e.Context(), kind, tsclient.UpdateContactRequest{Email: &email}))
	}
	const always = "a tailnet always has contacts"
	return kindCase[*v1alpha1.Contacts]{
		Kind: v1alpha1.ContactsKind,
		New: func(*env) *v1alpha1.Contacts {
			return &v1alpha1.Contacts{Spec: v1alpha1.ContactsSpec{ForProvider: v1alpha1.ContactsParameters{
				Security: ptr.To[v1alpha1.ContactEmail]("security@example.com"),
			}}}
		},
		// A contact that the object does not name.
		Others: func(e *env) func() (any, error) {
			set(e, tsclient.ContactAccount, "billing@example.com")
			return func() (any, error) {
				all, err := e.tailnet.Contacts().Get(e.Context())
				if err != nil {
					return nil, err
				}
				return all.Account, nil
			}
		},
		Check: func(e *env, mg *v1alpha1.Contacts) error {
			all, err := e.tailnet.Contacts().Get(e.Context())
			if err != nil {
				return err
			}
			type seen struct{ Security, Support v1alpha1.ContactEmail }
			p := mg.Spec.ForProvider
			want := seen{Security: *p.Security}
			got := seen{Security: v1alpha1.ContactEmail(all.Security.Email)}
			if p.Support != nil {
				want.Support, got.Support = *p.Support, v1alpha1.ContactEmail(all.Support.Email)
			}
			return lifecycle.Differ(want, got)
		},
		Drift: func(e *env, _ *v1alpha1.Contacts) { set(e, tsclient.ContactSecurity, "changed@example.com") },
		Update: func(_ *env, mg *v1alpha1.Contacts) {
			mg.Spec.ForProvider.Security = ptr.To[v1alpha1.ContactEmail]("psirt@example.com")
			mg.Spec.ForProvider.Support = ptr.To[v1alpha1.ContactEmail]("support@example.com")
		},
		Optional: map[string]string{
			"GET /api/v2/tailnet/{tailnet}/devices": "the tailnet's name is left out of the status then",
		},
		Skip: map[step]string{
			stepDelete:      "a tailnet must have contacts",
			stepRefuse:      always + ", and they have no owner",
			stepAdopt:       always,
			stepObserveNone: always,
		},
		Bad: []badInput[*v1alpha1.Contacts]{
			{Name: "Nobody", Break: func(mg *v1alpha1.Contacts) { mg.Spec.ForProvider = v1alpha1.ContactsParameters{} }, Want: []string{"spec.forProvider", "at least one of account"}},
			{Name: "NoAddress", Break: func(mg *v1alpha1.Contacts) {
				mg.Spec.ForProvider.Security = ptr.To[v1alpha1.ContactEmail]("security team")
			}, Want: []string{"spec.forProvider.security", "must be an email address"}},
		},
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"

	tsclient "tailscale.com/client/tailscale/v2"
)

// OAuth scopes of contacts.
const (
	scopeContacts      = "account_settings:read"
	scopeContactsWrite = "account_settings"
)

// Contacts are the addresses to which Tailscale sends email about a tailnet.
type Contacts = tsclient.Contacts

// A Contact is one of the Contacts.
type Contact = tsclient.Contact

// Contacts returns the tailnet's contacts from a shared response.
func (c TailnetResource) Contacts(ctx context.Context, staleness Staleness) (Contacts, error) {
	return c.values.contacts.get(ctx, c.maxAge(staleness))
}

func (c TailnetResource) loadContacts(ctx context.Context) (Contacts, error) {
	cs, err := c.api.Contacts().Get(ctx)
	if err != nil {
		return Contacts{}, classify(err, scopeContacts, true)
	}
	return *cs, nil
}

// SetContact changes the address of the contact account, support or security. Tailscale sends an
// email to the new address to verify it.
func (c TailnetResource) SetContact(ctx context.Context, contact, email string) error {
	defer c.values.contacts.expire()
	err := c.api.Contacts().Update(ctx, tsclient.ContactType(contact), tsclient.UpdateContactRequest{Email: &email})
	return classify(err, scopeContactsWrite, true)
}

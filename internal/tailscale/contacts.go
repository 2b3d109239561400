// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

// Scopes of contacts.
const (
	scopeContacts      = "account_settings:read"
	scopeContactsWrite = "account_settings"
)

// Contacts are whom Tailscale writes to about a tailnet.
type Contacts = tsclient.Contacts

// A Contact is one of them.
type Contact = tsclient.Contact

// Contacts of the tailnet, no older than maxAge; zero means the age that the
// client was made with.
func (c *Client) Contacts(ctx context.Context, maxAge time.Duration) (Contacts, error) {
	return c.wide.contacts.get(ctx, c.age(maxAge))
}

func (c *Client) loadContacts(ctx context.Context) (Contacts, error) {
	cs, err := c.api.Contacts().Get(ctx)
	if err != nil {
		return Contacts{}, classify(err, scopeContacts, true)
	}
	return *cs, nil
}

// SetContact changes the address of account, support or security. Tailscale
// sends an email to the new address, which must be verified.
func (c *Client) SetContact(ctx context.Context, contact, email string) error {
	defer c.wide.contacts.expire()
	err := c.api.Contacts().Update(ctx, tsclient.ContactType(contact), tsclient.UpdateContactRequest{Email: &email})
	return classify(err, scopeContactsWrite, true)
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"net/mail"
)

// A contact of the tailnet.
type contact struct {
	Email string `json:"email"`
	// FallbackEmail is used until Email is verified.
	FallbackEmail     string `json:"fallbackEmail,omitempty"`
	NeedsVerification bool   `json:"needsVerification"`
	// Mails counts the emails that request the verification of an address.
	Mails int `json:"-"`
}

// contactTypes are all that the API has.
var contactTypes = []string{"account", "support", "security"}

func defaultContacts() map[string]*contact {
	out := map[string]*contact{}
	for _, t := range contactTypes {
		out[t] = &contact{Email: "owner@example.com"}
	}
	return out
}

func getContacts(c *call) { c.json(c.s.st.Contacts) }

// patchContact changes an address. The new one must be verified, and the last
// verified one serves meanwhile.
func patchContact(c *call) {
	ct := c.s.st.Contacts[c.r.PathValue("type")]
	if ct == nil {
		c.fail(http.StatusNotFound, "unknown contact type")
		return
	}
	var req struct {
		Email *string `json:"email"`
	}
	if !c.decode(&req) {
		return
	}
	if req.Email == nil || *req.Email == ct.Email {
		c.ok()
		return
	}
	if a, err := mail.ParseAddress(*req.Email); err != nil || a.Address != *req.Email {
		c.fail(http.StatusBadRequest, "invalid email")
		return
	}
	if !ct.NeedsVerification {
		ct.FallbackEmail = ct.Email
	}
	ct.Email, ct.NeedsVerification = *req.Email, true
	ct.Mails++
	c.s.dirty()
	c.ok()
}

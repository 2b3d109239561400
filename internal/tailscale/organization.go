// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"
)

// scopeTailnets is the OAuth scope to read the tailnets of an organization.
const scopeTailnets = "tailnets:read"

// organizationMaxAge is how long the organization is cached. It rarely changes, and most
// credentials have no access.
const organizationMaxAge = time.Hour

// An Organization describes a tailnet and its owner. Fields that the API does not return are empty.
type Organization struct {
	// ID is the ID of the organization.
	ID string

	// TailnetID and TailnetName are the ID and the display name of this tailnet.
	TailnetID   string
	TailnetName string
}

// An orgTailnet is a tailnet in the list of its organization's tailnets.
type orgTailnet = tsclient.Tailnet

// Organization returns the organization of the tailnet with the DNS name domain, if it is known.
// The result may be an hour old. It is empty if the credential has no access, as most credentials,
// or if the API lacks the call.
func (c TailnetResource) Organization(ctx context.Context, domain string) (Organization, error) {
	all, err := c.values.tailnets.get(ctx, organizationMaxAge)
	if ClassOf(err) == ClassForbidden {
		return Organization{}, nil
	}
	if err != nil {
		return Organization{}, err
	}
	return c.organizationIn(all, domain), nil
}

// organizationIn returns the organization of the tailnet with the DNS name domain, as far as the list
// of tailnets shows it.
func (c TailnetResource) organizationIn(all []orgTailnet, domain string) Organization {
	var org Organization
	for i, t := range all {
		if isTailnet(t, domain) || isTailnet(t, c.tailnet) {
			return Organization{ID: t.OrgID, TailnetID: t.ID, TailnetName: t.DisplayName}
		}
		// The list may lack the tailnet, but all tailnets in it have the same owner.
		if i == 0 {
			org.ID = t.OrgID
		}
		if t.OrgID != org.ID {
			org.ID = ""
		}
	}
	return org
}

// isTailnet reports whether name is not empty and identifies the tailnet.
func isTailnet(t orgTailnet, name string) bool {
	return name != "" && (name == t.ID || name == t.DNSName || name == t.DisplayName)
}

func (c TailnetResource) loadTailnets(ctx context.Context) ([]orgTailnet, error) {
	// out stays nil if the response is empty, which is no valid list.
	var out *struct {
		Tailnets []orgTailnet `json:"tailnets"`
	}
	err := c.raw(ctx, scopeTailnets, http.MethodGet, nil, &out, "organizations", "-", "tailnets")
	switch ClassOf(err) {
	case ClassNotFound, ClassTailnetNotFound, ClassInvalid:
		return nil, nil // The call is alpha: the API may lack it.
	default:
	}
	if err != nil {
		return nil, err
	}
	if out == nil {
		return nil, &Error{Class: ClassUnavailable, Scope: scopeTailnets, Message: "its answer is empty"}
	}
	return out.Tailnets, nil
}

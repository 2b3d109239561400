// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"net/http"
	"time"
)

// scopeTailnets reads the tailnets of an organization.
const scopeTailnets = "tailnets:read"

// organizationMaxAge is how long the answer about the organization is kept. It
// hardly ever changes, and most credentials are refused.
const organizationMaxAge = time.Hour

// An Organization describes a tailnet and its owner. Fields that the API does not return are
// empty.
type Organization struct {
	// ID of the organization.
	ID string

	// TailnetID and TailnetName, for people, of this tailnet.
	TailnetID   string
	TailnetName string
}

// orgTailnet is a tailnet in the list of its organization's. Source: Tailnet in
// tailnet.go of the client library's next version.
type orgTailnet struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	OrgID       string `json:"orgId"`
	DNSName     string `json:"dnsName"`
}

// Organization returns the organization of the tailnet whose DNS name is domain, if that is
// known. The answer may be an hour old. A credential that may not ask, as most,
// or an API without the call gets an empty answer.
func (c *Client) Organization(ctx context.Context, domain string) (Organization, error) {
	all, err := c.values.tailnets.get(ctx, organizationMaxAge)
	if ClassOf(err) == ClassForbidden {
		return Organization{}, nil
	}
	if err != nil {
		return Organization{}, err
	}
	var org Organization
	for i, t := range all {
		if t.is(domain) || t.is(c.tailnet) {
			return Organization{ID: t.OrgID, TailnetID: t.ID, TailnetName: t.DisplayName}, nil
		}
		// The list may lack the tailnet itself, but all in it have one owner.
		if i == 0 {
			org.ID = t.OrgID
		}
		if t.OrgID != org.ID {
			org.ID = ""
		}
	}
	return org, nil
}

// is reports whether a name that is not empty means the tailnet.
func (t orgTailnet) is(name string) bool {
	return name != "" && (name == t.ID || name == t.DNSName || name == t.DisplayName)
}

func (c *Client) loadTailnets(ctx context.Context) ([]orgTailnet, error) {
	// Nil if the answer is empty, which is no answer.
	var out *struct {
		Tailnets []orgTailnet `json:"tailnets"`
	}
	err := c.raw(ctx, scopeTailnets, http.MethodGet, nil, &out, "organizations", "-", "tailnets")
	switch ClassOf(err) {
	case ClassNotFound, ClassTailnetNotFound, ClassInvalid:
		return nil, nil // The call is alpha: it may be missing.
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

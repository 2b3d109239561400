// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"encoding/hex"
	"strings"
	"time"
)

// identityMaxAge is how long an answer without a domain is cached that was requested only to
// identify the tailnet. Lists of devices that others request count at once.
const identityMaxAge = 10 * time.Minute

// A TailnetIdentity is what is known of which tailnet a client leads to. Tailscale's API has no call that
// answers this for each credential (OpenAPI of 2026: only /organizations/-/tailnets and users have a
// tailnet's ID).
type TailnetIdentity struct {
	// ID of the tailnet. Empty unless the credential may read the tailnets of its organization.
	ID string

	// Domain is the DNS name of the tailnet. Empty if the tailnet has no devices, or if the credential
	// may not read them. An admin may change it.
	Domain string

	// Credential is the OAuth client, the federated identity or the API access token, and the name of the
	// tailnet that the client asks for. A credential belongs to one tailnet permanently, but a tailnet
	// has many.
	Credential string

	// URL of the API, where Credential is unique.
	URL string
}

// Names returns all names of the tailnet, the best one first.
func (i TailnetIdentity) Names() []string {
	var out []string
	for _, n := range []string{i.ID, i.Domain, i.Credential} {
		if n != "" {
			out = append(out, n)
		}
	}
	return out
}

// Known reports whether anything but the credential identifies the tailnet.
func (i TailnetIdentity) Known() bool { return i.ID != "" || i.Domain != "" }

// KnownTailnetIdentity returns what is known of the client's tailnet without a request.
func (c TailnetResource) KnownTailnetIdentity() TailnetIdentity {
	domain := domainOf(c.devices.known())
	return TailnetIdentity{
		ID:         c.organizationIn(c.values.tailnets.known(), domain).TailnetID,
		Domain:     domain,
		Credential: c.credentialName(),
		URL:        strings.TrimSuffix(c.base.String(), "/"),
	}
}

// TailnetIdentity returns what identifies the client's tailnet. It requests what is not known. Missing
// scopes are no error: the fields are empty then. With an error, the result is what is known.
func (c TailnetResource) TailnetIdentity(ctx context.Context) (TailnetIdentity, error) {
	out := c.KnownTailnetIdentity()
	if out.Domain == "" {
		var err error
		if out.Domain, err = c.values.domain.get(ctx, identityMaxAge); err != nil && ClassOf(err) != ClassForbidden {
			return out, err
		}
	}
	org, err := c.Organization(ctx, out.Domain)
	out.ID = org.TailnetID
	return out, err
}

// credentialName returns the name of the client's credential and of the tailnet that it asks for. No
// part of it is secret.
func (c TailnetResource) credentialName() string {
	name := c.login.name
	if c.tailnet == "-" {
		return name
	}
	return name + "/" + c.tailnet
}

// nameOf returns the name of a credential, which distinguishes it from all others.
func nameOf(cfg Config) string {
	switch id := keyIDOf(cfg.APIKey); {
	case cfg.APIKey == "":
		return cfg.ClientID
	case id != "":
		return id
	}
	h := hashOf(cfg.APIKey)
	return "token-" + hex.EncodeToString(h[:8])
}

// domainOf returns the DNS name of the tailnet of devices, without a leading dot, or "".
func domainOf(ds []Device) string {
	for _, d := range ds {
		// Devices that are shared from other tailnets have those tailnets' domains.
		if d.IsExternal {
			continue
		}
		if _, domain, ok := strings.Cut(strings.TrimSuffix(d.Name, "."), "."); ok {
			return domain
		}
	}
	return ""
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A place is the tailnet in which a run creates objects, with the values that distinguish it from
// others.
type place struct {
	APIURL string `json:"apiURL,omitempty"`

	// Tailnet is the tailnet's name in API calls, which is often "-".
	Tailnet string `json:"tailnet,omitempty"`

	// Domain is the tailnet's DNS name; empty while no device of the tailnet shows it.
	Domain string `json:"domain,omitempty"`

	// Credential is the fingerprint of the credential, which belongs to one tailnet.
	Credential string `json:"credential,omitempty"`
}

// errElsewhere returns an error unless other is certainly the same tailnet. An unknown
// value is no proof: an object in another tailnet may have the same name.
func (p place) errElsewhere(other place) error {
	named := func(s string) string { return strings.TrimPrefix(s, "-") }
	switch {
	case p.APIURL != other.APIURL:
		return errors.Errorf("the ledger belongs to a tailnet at %s: pass --api-url", p.APIURL)
	case p.Domain != "" && other.Domain != "" && p.Domain != other.Domain:
		return errors.Errorf("the ledger belongs to tailnet %s, the credential to %s: use a credential of the ledger's tailnet", p.Domain, other.Domain)
	case named(p.Tailnet) != "" && named(other.Tailnet) != "" && p.Tailnet != other.Tailnet:
		return errors.Errorf("the ledger belongs to tailnet %s: pass --tailnet", p.Tailnet)
	case p.Credential != "" && p.Credential == other.Credential, p.Domain != "" && p.Domain == other.Domain:
		return nil
	}
	return errors.Errorf("the credential may belong to another tailnet than the ledger (%s): use the credential of that run", cmp.Or(p.Domain, "its name is unknown"))
}

// fingerprint identifies a credential without showing it. A federated identity has another token
// each time, but one client ID.
func (c credential) fingerprint() string {
	h := sha256.Sum256([]byte(cmp.Or(c.clientID, c.apiKey)))
	return hex.EncodeToString(h[:8])
}

// place returns the tailnet of the credential.
func (r *run) place(ctx context.Context) (place, error) {
	p := place{APIURL: r.opts.APIURL, Tailnet: r.opts.Tailnet, Credential: r.cred.fingerprint()}
	s := r.session
	a, err := s.get(ctx, s.tn("devices")...)
	if err != nil {
		return p, err
	}
	if a.ok() {
		p.Domain = domainOf(a.object())
	}
	return p, nil
}

// domainOf returns the DNS name of the tailnet whose devices are listed: the name of a device is
// HOST.DOMAIN. Devices that other tailnets share have the domains of those tailnets.
func domainOf(devices map[string]any) string {
	all, _ := devices["devices"].([]any)
	for _, e := range all {
		m, _ := e.(map[string]any)
		if external, _ := m["isExternal"].(bool); external {
			continue
		}
		if _, domain, ok := strings.Cut(strings.TrimSuffix(str(m, "name"), "."), "."); ok {
			return domain
		}
	}
	return ""
}

// knock waits until the API accepts the credential. For about a minute, the API answers all
// requests of a new client with 404 (live tests of Ansible's collection abn.tailscale,
// docs/troubleshooting.md, "404"); that it may also answer 401 is an assumption. knock does not
// wait for a credential that gets no token, because it is wrong.
func (r *run) knock(ctx context.Context) error {
	s := r.session
	t := &turn{session: s, run: r}
	var last error
	_, err := t.until(ctx, "the API accepts the credential, which may take a minute for a new client", func(ctx context.Context) (string, error) {
		a, err := s.get(ctx, s.tn("devices")...)
		if err != nil {
			return "", err
		}
		if a.status != http.StatusUnauthorized && a.status != http.StatusNotFound {
			return "", nil
		}
		last = errors.Errorf("the API answered %d: %s", a.status, r.secret.text(a.message()))
		if a.status == http.StatusUnauthorized && r.cred.apiKey != "" {
			// An access token works immediately.
			return "", last
		}
		return last.Error(), nil
	})
	var tooLate late
	if errors.As(err, &tooLate) {
		return last
	}
	return err
}

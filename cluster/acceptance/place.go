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

// A place is where a run makes objects: a tailnet, with all that distinguishes it from another.
type place struct {
	APIURL string `json:"apiURL,omitempty"`

	// Tailnet is the name that the API was called with, which is often "-".
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
		return errors.Errorf("the ledger is of a tailnet at %s: give --api-url", p.APIURL)
	case p.Domain != "" && other.Domain != "" && p.Domain != other.Domain:
		return errors.Errorf("the ledger is of tailnet %s, the credential is of %s: use a credential of that tailnet", p.Domain, other.Domain)
	case named(p.Tailnet) != "" && named(other.Tailnet) != "" && p.Tailnet != other.Tailnet:
		return errors.Errorf("the ledger is of tailnet %s: give --tailnet", p.Tailnet)
	case p.Credential != "" && p.Credential == other.Credential, p.Domain != "" && p.Domain == other.Domain:
		return nil
	}
	return errors.Errorf("the credential may be of another tailnet than the ledger's (%s): use the credential of that run", cmp.Or(p.Domain, "its name is not known"))
}

// fingerprint identifies a credential without showing it. An identity that is exchanged
// has another token each time, and one client.
func (c credential) fingerprint() string {
	h := sha256.Sum256([]byte(cmp.Or(c.clientID, c.apiKey)))
	return hex.EncodeToString(h[:8])
}

// place returns the tailnet that the credential is of.
func (r *run) place(ctx context.Context) (place, error) {
	p := place{APIURL: r.opts.APIURL, Tailnet: r.opts.Tailnet, Credential: r.cred.fingerprint()}
	s := r.login.session()
	a, err := s.get(ctx, s.tn("devices")...)
	if err != nil {
		return p, err
	}
	if a.ok() {
		p.Domain = domainOf(a.object())
	}
	return p, nil
}

// domainOf returns the DNS name of the tailnet whose devices are listed: the name of a device
// is HOST.DOMAIN. Devices that other tailnets share have names of those.
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

// knock waits until the API takes the credential. A client that was made a minute ago is
// answered 404 to everything (live tests of Ansible's collection abn.tailscale,
// docs/troubleshooting.md, "404"); that it may be answered 401, too, is an assumption.
// A credential that gets no token is wrong, and not waited for.
func (r *run) knock(ctx context.Context) error {
	s := r.login.session()
	t := &turn{session: s, run: r}
	var last error
	_, err := t.until(ctx, "the API takes the credential, which a new client may take a minute for", func(ctx context.Context) (string, error) {
		a, err := s.get(ctx, s.tn("devices")...)
		if err != nil {
			return "", err
		}
		if a.status != http.StatusUnauthorized && a.status != http.StatusNotFound {
			return "", nil
		}
		last = errors.Errorf("the API answered %d: %s", a.status, r.secret.text(a.message()))
		if a.status == http.StatusUnauthorized && r.cred.apiKey != "" {
			// An access token works at once.
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

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
	"tailscale.com/tstime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A RateLimit allows Count requests within Window, and refills evenly.
type RateLimit struct {
	Count  int               `json:"count"`
	Window tstime.GoDuration `json:"window"`
}

// ACMELimits are the limits of an ACME server. The defaults are Let's Encrypt's
// (https://letsencrypt.org/docs/rate-limits/).
type ACMELimits struct {
	// Certificates limits those for all names of a registered domain. A tailnet's domain is one:
	// ts.net is in the Public Suffix List. Default 50 in 7 days. A name that had a certificate
	// before is exempt.
	Certificates RateLimit `json:"certificates,omitzero"`
	// PerName limits those for the same name. Default 5 in 7 days.
	PerName RateLimit `json:"perName,omitzero"`
	// Accounts limits new accounts of one address. Default 10 in 3 hours.
	Accounts RateLimit `json:"accounts,omitzero"`
}

func (l *ACMELimits) setDefaults() {
	const week = 7 * 24 * time.Hour
	for _, d := range []struct {
		limit  *RateLimit
		count  int
		window time.Duration
	}{{&l.Certificates, 50, week}, {&l.PerName, 5, week}, {&l.Accounts, 10, 3 * time.Hour}} {
		if *d.limit == (RateLimit{}) {
			*d.limit = RateLimit{Count: d.count, Window: tstime.GoDuration{Duration: d.window}}
		}
	}
}

func (l ACMELimits) validate() error {
	for _, r := range []RateLimit{l.Certificates, l.PerName, l.Accounts} {
		if r.Count < 1 || r.Window.Duration < time.Duration(r.Count) {
			return errors.New("acme: a limit needs a count and a window")
		}
	}
	return nil
}

// A bucket counts requests toward a RateLimit with the generic cell rate algorithm, as Let's
// Encrypt does (letsencrypt/boulder, ratelimits/gcra.go). The zero value is an unused one.
type bucket struct{ full time.Time }

// wait returns how long the next request must wait, or 0.
func (b *bucket) wait(at time.Time, l RateLimit) time.Duration {
	if b == nil {
		return 0
	}
	return max(0, b.full.Add(l.interval()-l.Window.Duration).Sub(at))
}

// spend counts a request.
func (b *bucket) spend(at time.Time, l RateLimit) {
	if b.full.Before(at) {
		b.full = at
	}
	b.full = b.full.Add(l.interval())
}

func (l RateLimit) interval() time.Duration { return l.Window.Duration / time.Duration(l.Count) }

// An acmeRefusal is the reply to a request that an ACME server refuses.
type acmeRefusal struct {
	status     int
	kind       string
	detail     string
	retryAfter time.Duration
}

// limited returns the refusal by a limit, in the words of Let's Encrypt (letsencrypt/boulder,
// ratelimits/transaction.go and limiter.go).
func limited(subject, page string, at time.Time, wait time.Duration, l RateLimit) *acmeRefusal {
	return &acmeRefusal{
		status: http.StatusTooManyRequests, kind: "rateLimited", retryAfter: wait,
		detail: fmt.Sprintf("too many %s in the last %s, retry after %s: see https://letsencrypt.org/docs/rate-limits/#%s",
			subject, l.Window.Duration, at.Add(wait).UTC().Format("2006-01-02 15:04:05 MST"), page),
	}
}

// An acmeBook is the account of what an ACME server has issued.
type acmeBook struct {
	addresses map[string]*bucket
	domains   map[string]*bucket
	names     map[string]*bucket
	// accounts holds the thumbprints of the keys that have an account.
	accounts map[string]bool
	// issuedTo holds the account of each certificate, by its identifier of RFC 9773.
	issuedTo map[string]string
}

func newACMEBook() *acmeBook {
	return &acmeBook{
		addresses: map[string]*bucket{}, domains: map[string]*bucket{}, names: map[string]*bucket{},
		accounts: map[string]bool{}, issuedTo: map[string]string{},
	}
}

// An acmeOrder is an order of certificates.
type acmeOrder struct {
	account string
	names   []string
	// replaces is the identifier of the certificate that the order replaces, or "".
	replaces string
}

func (o acmeOrder) set() string { return strings.Join(o.names, ",") }

// domain returns the registered domain of the order's names.
func (o acmeOrder) domain() string {
	if len(o.names) == 0 {
		return ""
	}
	d, err := publicsuffix.EffectiveTLDPlusOne(o.names[0])
	if err != nil {
		return o.names[0]
	}
	return d
}

// account returns the refusal of a new account, or nil.
func (b *acmeBook) account(at time.Time, address string, l ACMELimits) *acmeRefusal {
	wait := b.addresses[address].wait(at, l.Accounts)
	if wait == 0 {
		return nil
	}
	return limited(fmt.Sprintf("new registrations (%d) from this IP address", l.Accounts.Count), "new-registrations-per-ip-address", at, wait, l.Accounts)
}

// order returns the refusal of an order, or nil. An order that replaces a certificate of the same
// account is exempt from all limits; one that names the certificate of another account is refused
// (letsencrypt/boulder, wfe2/wfe.go, validateReplacementOrder; tailscale/tailscale#18251).
func (b *acmeBook) order(at time.Time, o acmeOrder, l ACMELimits) *acmeRefusal {
	if o.replaces != "" {
		switch account, found := b.issuedTo[o.replaces]; {
		case !found:
			return &acmeRefusal{status: http.StatusNotFound, kind: "malformed", detail: "Could not validate ARI 'replaces' field :: could not find an existing certificate with the given identifier"}
		case account != o.account:
			return &acmeRefusal{status: http.StatusForbidden, kind: "unauthorized", detail: "Could not validate ARI 'replaces' field :: requester account did not request the certificate being replaced by this order"}
		}
		return nil
	}
	issued := b.names[o.set()]
	if issued != nil {
		// A renewal without ARI counts only toward the limit of its name.
		if wait := issued.wait(at, l.PerName); wait > 0 {
			return limited(fmt.Sprintf("certificates (%d) already issued for this exact set of identifiers", l.PerName.Count), "new-certificates-per-exact-set-of-identifiers", at, wait, l.PerName)
		}
		return nil
	}
	if wait := b.domains[o.domain()].wait(at, l.Certificates); wait > 0 {
		return limited(fmt.Sprintf("certificates (%d) already issued for %q", l.Certificates.Count, o.domain()), "new-certificates-per-registered-domain", at, wait, l.Certificates)
	}
	return nil
}

// issued counts an order whose certificate was issued.
func (b *acmeBook) issued(at time.Time, o acmeOrder, l ACMELimits) {
	if o.replaces != "" {
		return
	}
	if b.names[o.set()] == nil {
		spend(b.domains, o.domain(), at, l.Certificates)
	}
	spend(b.names, o.set(), at, l.PerName)
}

func spend(buckets map[string]*bucket, name string, at time.Time, l RateLimit) {
	if buckets[name] == nil {
		buckets[name] = &bucket{}
	}
	buckets[name].spend(at, l)
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestACMELimits orders certificates until each limit refuses.
func TestACMELimits(t *testing.T) {
	var l ACMELimits
	l.setDefaults()
	start := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	b := newACMEBook()
	order := func(at time.Time, o acmeOrder) *acmeRefusal {
		t.Helper()
		r := b.order(at, o, l)
		if r == nil {
			b.issued(at, o, l)
		}
		return r
	}
	name := func(n int) acmeOrder {
		return acmeOrder{account: "1", names: []string{fmt.Sprintf("web-%d.tail1234.ts.net", n)}}
	}
	refused := func(reason string, r *acmeRefusal, status int, detail string, wait time.Duration) {
		t.Helper()
		switch {
		case r == nil:
			t.Errorf("%s: want a refusal", reason)
		case r.status != status || !strings.Contains(r.detail, detail) || r.retryAfter != wait:
			t.Errorf("%s: want %d after %v with %q, got %d after %v with %q", reason, status, wait, detail, r.status, r.retryAfter, r.detail)
		}
	}
	for n := range 50 {
		if r := order(start, name(n)); r != nil {
			t.Fatalf("certificate %d of 50 is refused: %s", n+1, r.detail)
		}
	}
	week := 7 * 24 * time.Hour
	refused("a tailnet has 50 certificates a week", order(start, name(50)), http.StatusTooManyRequests,
		`too many certificates (50) already issued for "tail1234.ts.net" in the last 168h0m0s, retry after 2026-11-25 03:21:36 UTC`, week/50)
	if r := order(start, acmeOrder{names: []string{"web.tail5678.ts.net"}}); r != nil {
		t.Errorf("another tailnet has separate limits: %s", r.detail)
	}
	if r := order(start.Add(week/50), name(50)); r != nil {
		t.Errorf("the limit refills: %s", r.detail)
	}

	for n := range 4 {
		if r := order(start, name(0)); r != nil {
			t.Fatalf("renewal %d of a name is exempt from the tailnet's limit: %s", n+1, r.detail)
		}
	}
	refused("a name has 5 certificates a week", order(start, name(0)), http.StatusTooManyRequests,
		"too many certificates (5) already issued for this exact set of identifiers", week/5)

	renewal := name(0)
	renewal.replaces = "id"
	refused("a certificate of another certificate authority cannot be replaced", order(start, renewal), http.StatusNotFound, "could not find", 0)
	b.issuedTo["id"] = "2"
	refused("nor one of another account", order(start, renewal), http.StatusForbidden, "requester account did not request", 0)
	b.issuedTo["id"] = "1"
	if r := order(start, renewal); r != nil {
		t.Errorf("a renewal by the same account is exempt from all limits: %s", r.detail)
	}

	for n := range 10 {
		if r := b.account(start, "192.0.2.1", l); r != nil {
			t.Fatalf("account %d of 10 is refused: %s", n+1, r.detail)
		}
		spend(b.addresses, "192.0.2.1", start, l.Accounts)
	}
	refused("an address has 10 accounts in three hours", b.account(start, "192.0.2.1", l), http.StatusTooManyRequests,
		"too many new registrations (10) from this IP address in the last 3h0m0s", 18*time.Minute)
	if r := b.account(start, "192.0.2.2", l); r != nil {
		t.Errorf("another address has separate limits: %s", r.detail)
	}
}

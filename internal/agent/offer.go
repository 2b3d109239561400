// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
)

const (
	// offerAfter is how long a certificate domain can be missing before the service is advertised
	// without its certificate. The provider's approval takes a few seconds.
	offerAfter = 30 * time.Second

	// offerFor bounds how long a service is advertised without its certificate: from the offer
	// until control grants the domain, and from the begin of the first attempt until there is a
	// certificate. Issuing one takes up to a minute or two. An attempt may wait for its turn.
	offerFor = 10 * time.Minute

	// maxOffers is how many services are advertised without their certificates at a time. Few
	// attempts are under way at a time, and other hosts may have the certificate of a service.
	maxOffers = 8

	// offerAgain is how long a service then waits before it is advertised without its certificate
	// again.
	offerAgain = time.Hour

	// messageNotGranted is part of tailscaled's error for a domain that control has not granted
	// (tailscale.com ipn/ipnlocal/cert.go, validCertDomain's callers).
	messageNotGranted = "invalid domain"
)

// offers are the certificate domains that control does not grant, by name. Control may grant
// the domain of a service only to a host that advertises the service
// (tailscale/tailscale#20716), but a service should be advertised only with its certificate. So
// the issuer of the certificate advertises the service without it for a while. If control only
// needs an approval, the approval arrives before that.
type offers map[string]offer

// An offer tracks one domain. Times are zero until they are known.
type offer struct {
	missing time.Time // Since when the domain is missing.
	began   time.Time // Since when the service is advertised without its certificate.
	tried   time.Time // When the first attempt for the certificate began since then.
	ended   time.Time // When the last such time ended.
}

// step returns the domains whose services are advertised without a certificate, and those whose
// certificate is requested at once. status has each wanted domain without a usable certificate.
// The last result is the next time at which the answer may change, or zero if there is none.
func (o offers) step(at time.Time, status map[string]issue.Status) (offered map[string]bool, retries []string, next time.Time) {
	for name := range o {
		if _, wanted := status[name]; !wanted {
			delete(o, name)
		}
	}
	offered = map[string]bool{}
	var due []string
	for name, st := range status {
		f := o[name].observe(at, st)
		o[name] = f
		switch {
		case !f.began.IsZero():
			offered[name] = true
			next = earliest(at, next, f.expires(st))
		case f.missing.IsZero():
		case at.Before(f.due()):
			next = earliest(at, next, f.due())
		default:
			due = append(due, name)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return cmp.Or(o[a].due().Compare(o[b].due()), cmp.Compare(a, b)) })
	for _, name := range due[:min(len(due), max(0, maxOffers-len(offered)))] {
		f, st := o[name], status[name]
		f.began = at
		o[name], offered[name] = f, true
		if st.Requested {
			retries = append(retries, name)
		}
		next = earliest(at, next, f.expires(st))
	}
	return offered, retries, next
}

// observe returns the offer after the domain's status became known.
func (f offer) observe(at time.Time, st issue.Status) offer {
	granted := st.Requested && !strings.Contains(st.Problem, messageNotGranted)
	if !f.began.IsZero() {
		if f.tried.IsZero() && granted && !st.Began.Before(f.began) {
			f.tried = st.Began
		}
		if expires := f.expires(st); expires.IsZero() || at.Before(expires) {
			return f
		}
		f = offer{ended: at}
	}
	switch {
	case granted:
		f.missing = time.Time{}
	case f.missing.IsZero():
		f.missing = at
	}
	return f
}

// expires returns when the service is no longer advertised without its certificate. Zero means
// that this is not known, because the attempt waits for its turn.
func (f offer) expires(st issue.Status) time.Time {
	switch {
	case !f.tried.IsZero():
		return f.tried.Add(offerFor)
	case st.Requested && st.Problem == "":
		return time.Time{}
	default:
		return f.began.Add(offerFor)
	}
}

// due returns when the service is advertised without its certificate.
func (f offer) due() time.Time {
	due := f.missing.Add(offerAfter)
	if !f.ended.IsZero() && f.ended.Add(offerAgain).After(due) {
		return f.ended.Add(offerAgain)
	}
	return due
}

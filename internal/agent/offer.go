// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
)

const (
	// offerAfter is how long a certificate domain can be missing before the service is advertised
	// without its certificate. The provider's approval takes a few seconds.
	offerAfter = 30 * time.Second

	// offerFor bounds how long a service is advertised without its certificate. Issuing one takes
	// up to a minute or two.
	offerFor = 10 * time.Minute

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
	ended   time.Time // When the last such time ended.
}

// step returns the domains whose services are advertised without a certificate, and those whose
// certificate is requested at once. status has each wanted domain without a usable certificate.
// The last result is the next time at which the answer may change, or zero if there is none.
func (o offers) step(now time.Time, status map[string]issue.Status) (offered map[string]bool, again []string, next time.Time) {
	for name := range o {
		if _, wanted := status[name]; !wanted {
			delete(o, name)
		}
	}
	offered = map[string]bool{}
	for name, st := range status {
		f := o[name]
		granted := st.Asked && !strings.Contains(st.Problem, messageNotGranted)
		switch {
		case !f.began.IsZero() && now.Before(f.began.Add(offerFor)):
		case !f.began.IsZero():
			f = offer{missing: now, ended: now}
		case granted:
			f.missing = time.Time{}
		case f.missing.IsZero():
			f.missing = now
		case !now.Before(f.due()):
			f.began = now
			if st.Asked {
				again = append(again, name)
			}
		}
		o[name] = f
		switch {
		case !f.began.IsZero():
			offered[name] = true
			next = earliest(now, next, f.began.Add(offerFor))
		case !f.missing.IsZero():
			next = earliest(now, next, f.due())
		}
	}
	return offered, again, next
}

// due returns when the service is advertised without its certificate.
func (f offer) due() time.Time {
	due := f.missing.Add(offerAfter)
	if !f.ended.IsZero() && f.ended.Add(offerAgain).After(due) {
		return f.ended.Add(offerAgain)
	}
	return due
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// forgetPause is how long to wait between attempts to remove expired certificates.
const forgetPause = time.Minute

// Problems of certificates that Tailscale provides. They continue a message that names one.
const (
	problemLimited     = "a limit of the certificate authority refuses it until %s, when the proxy asks again: %s"
	problemLimitedSome = "a limit of the certificate authority refuses it for a time that is not known, and the proxy asks again: %s"
	problemNoSpaceIn   = "Secret %q, which holds the certificates of all services of these endpoints, is too full for another one: serve the service by other TailscaleEndpoints. Services that have their certificates are not affected"
)

// An issuer gets certificates from Tailscale. See issue.Issuer.
type issuer interface {
	Set(ctx context.Context, session int, domains []string) error
	Grant(domains []string)
	Statuses() map[string]issue.Status
	Again(ctx context.Context, domain string) error
}

// A store is what the state Secret holds of certificates.
type store struct {
	// data of the Secret. Nil until it is known.
	data map[string][]byte

	// admitted are the names that may be requested, because the Secret has space for their
	// certificates. full are the others.
	admitted map[string]bool
	full     []string

	// forgetAt is when expired certificates may be removed again.
	forgetAt time.Time
}

// set records the Secret, which is nil if there is none.
func (s *store) set(o *corev1.Secret) {
	s.data = map[string][]byte{}
	if o != nil && o.Data != nil {
		s.data = o.Data
	}
}

// A certificateRole has tailscaled get certificates from Tailscale, which it keeps in the state
// Secret.
type certificateRole struct {
	plainRole

	retry *retrier

	// issuer gets certificates, and forget removes keys from the state Secret, where they are. Only
	// one pod of the group has an issuer that gets any.
	issuer issuer
	forget func(keys []string)
	store  store

	// secret is the name of the state Secret.
	secret string

	// offers are the certificate domains that control does not grant, and offerAt is when they may
	// change. Zero means never.
	offers  offers
	offerAt time.Time
}

// prepare has tailscaled get certificates for the services from Tailscale, if the
// tailnet provides them, and the state Secret has the space. Until this is known, the last request
// remains.
func (r *certificateRole) prepare(ctx context.Context, at time.Time, f facts) {
	if f.https() == plan.HTTPSUnknown || r.store.data == nil {
		return
	}
	var fit []string
	r.store.full = nil
	if f.https() == plan.HTTPSOn {
		wanted := plan.Domains(f.services)
		fit, r.store.full = issue.Fit(r.store.data, wanted, r.store.admitted)
		r.forgetExpired(at, wanted)
	}
	r.store.admitted = make(map[string]bool, len(fit))
	for _, name := range fit {
		r.store.admitted[name] = true
	}
	if err := r.issuer.Set(ctx, f.tailnet.Session, fit); err != nil {
		r.retry.failed(at, "Cannot get certificates", err)
	}
	r.issuer.Grant(f.tailnet.CertDomains)
}

// step returns when an offer may change.
func (r *certificateRole) step(context.Context, time.Time, facts) time.Time { return r.offerAt }

// forgetExpired makes space in the state Secret, if a name needs some.
func (r *certificateRole) forgetExpired(at time.Time, wanted []string) {
	if len(r.store.full) == 0 || at.Before(r.store.forgetAt) {
		return
	}
	if keys := issue.Expired(r.store.data, wanted, at); len(keys) > 0 {
		r.store.forgetAt = at.Add(forgetPause)
		r.forget(keys)
	}
}

// issuing returns why certificates cannot be had or renewed, by name. statuses are the issuer's.
func (r *certificateRole) issuing(statuses map[string]issue.Status) map[string]plan.IssueProblem {
	out := map[string]plan.IssueProblem{}
	for name, st := range statuses {
		switch {
		case st.Problem == "":
		case st.Limited && st.LimitEnd.IsZero():
			out[name] = plan.IssueProblem{Reason: meta.ReasonCertificateLimited, Text: fmt.Sprintf(problemLimitedSome, st.Problem)}
		case st.Limited:
			out[name] = plan.IssueProblem{Reason: meta.ReasonCertificateLimited, Text: fmt.Sprintf(problemLimited, st.LimitEnd.Format(time.RFC3339), st.Problem)}
		default:
			out[name] = plan.IssueProblem{Reason: meta.ReasonCertificateNotIssued, Text: st.Problem}
		}
	}
	for _, name := range r.store.full {
		out[name] = plan.IssueProblem{Reason: meta.ReasonCertificateNoSpace, Text: fmt.Sprintf(problemNoSpaceIn, r.secret)}
	}
	return out
}

// offered returns the names of the services to advertise without a certificate. certificates are those
// in use, and statuses are the issuer's.
func (r *certificateRole) offered(ctx context.Context, at time.Time, https plan.HTTPS, certificates map[plan.CertificateRef]plan.Certificate, statuses map[string]issue.Status) map[string]bool {
	r.offerAt = time.Time{}
	if https != plan.HTTPSOn {
		return nil
	}
	unusable := maps.Clone(statuses)
	for ref, c := range certificates {
		if c.Usable {
			delete(unusable, ref.Domain)
		}
	}
	offered, retries, next := r.offers.step(at, unusable)
	r.offerAt = next
	for _, domain := range retries {
		if err := r.issuer.Again(ctx, domain); err != nil {
			r.retry.failed(at, "Cannot get certificates", err)
		}
	}
	return offered
}

// counts returns the number of certificates that Tailscale provides by state, and when the first of
// the certificates in use expires. Only the issuer counts them.
func (r *certificateRole) counts(certificates map[plan.CertificateRef]plan.Certificate) (states map[string]int, expiry time.Time) {
	states = map[string]int{}
	usable := map[string]bool{}
	for ref, c := range certificates {
		usable[ref.Domain] = c.Usable
		if c.Usable && !c.NotAfter.IsZero() && (expiry.IsZero() || c.NotAfter.Before(expiry)) {
			expiry = c.NotAfter
		}
	}
	for name, st := range r.issuer.Statuses() {
		switch {
		case usable[name]:
			states[stateUsable]++
		case st.Limited:
			states[stateLimited]++
		case st.Problem != "":
			states[stateFailed]++
		default:
			states[stateWaiting]++
		}
	}
	states[stateNoSpace] = len(r.store.full)
	return states, expiry
}

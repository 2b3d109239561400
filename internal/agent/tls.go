// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/terminate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// fileTLS is the only file in Options.TLSDir.
const fileTLS = "tls.json"

// newTerminator returns the server that terminates TLS with certificates from Secrets.
func (a *Agent) newTerminator(ctx context.Context) *terminate.Server {
	return terminate.New(terminate.Options{
		Watch: func(ctx context.Context, name string, fn func(*corev1.Secret)) {
			kube.WatchSecret(ctx, a.client, client.ObjectKey{Namespace: a.opts.PodNamespace, Name: name}, fn)
		},
		WhoIs:   a.local.WhoIs,
		Control: a.opts.Control,
		Changed: func() { a.do(ctx, func(*loop) {}) },
		Store:   atomicdir.New(a.opts.TLSDir, fileTLS),
		Log:     a.log,
	})
}

// issuer returns the name of the machine that gets the certificates that Tailscale provides:
// the first of the pod's group. Its state Secret holds them.
func (o Options) issuer() string {
	i := strings.LastIndexByte(o.PodName, '-')
	if i < 0 {
		return o.PodName
	}
	return o.PodName[:i] + "-0"
}

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

// issues reports whether the pod gets the certificates for all pods of its group.
func (o Options) issues() bool {
	return o.PodName == o.issuer() && o.Egress.ConfigMap == ""
}

// newIssuer returns the pod's issuer.
func (a *Agent) newIssuer(ctx context.Context) issuer {
	if !a.opts.issues() {
		return issue.None{}
	}
	return issue.New(ctx, a.local, issue.Options{
		Directory: a.opts.ACMEDirectory,
		Changed:   func() { a.do(ctx, func(*loop) {}) },
		Attempted: a.metrics.attempted,
		Log:       a.log,
	})
}

// forget removes keys from the state Secret, in the background.
func (a *Agent) forget(ctx context.Context, keys []string) {
	go func() {
		if err := kube.RemoveSecretKeys(ctx, a.client, a.opts.stateSecret(), keys); err != nil && ctx.Err() == nil {
			a.log.Info("Cannot remove expired certificates from the state Secret", "error", err)
		}
	}()
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

// getCertificates has tailscaled get certificates for the services from Tailscale, if the
// tailnet provides them, and the state Secret has the space. Until this is known, the last request
// remains.
func (l *loop) getCertificates(ctx context.Context, at time.Time, services []plan.Service) {
	if l.https() == plan.HTTPSUnknown || l.store.data == nil {
		return
	}
	var fit []string
	l.store.full = nil
	if l.https() == plan.HTTPSOn {
		wanted := plan.Domains(services)
		fit, l.store.full = issue.Fit(l.store.data, wanted, l.store.admitted)
		l.forgetExpired(at, wanted)
	}
	l.store.admitted = make(map[string]bool, len(fit))
	for _, name := range fit {
		l.store.admitted[name] = true
	}
	if err := l.issuer.Set(ctx, l.tailnet.Session, fit); err != nil {
		l.failed(at, "Cannot get certificates", err)
	}
	l.issuer.Grant(l.tailnet.CertDomains)
}

// forgetExpired makes space in the state Secret, if a name needs some.
func (l *loop) forgetExpired(at time.Time, wanted []string) {
	if len(l.store.full) == 0 || at.Before(l.store.forgetAt) {
		return
	}
	if keys := issue.Expired(l.store.data, wanted, at); len(keys) > 0 {
		l.store.forgetAt = at.Add(forgetPause)
		l.forget(keys)
	}
}

// issuing returns why certificates cannot be had or renewed, by name.
func (l *loop) issuing() map[string]plan.IssueProblem {
	out := map[string]plan.IssueProblem{}
	for name, st := range l.issuer.Statuses() {
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
	for _, name := range l.store.full {
		out[name] = plan.IssueProblem{Reason: meta.ReasonCertificateNoSpace, Text: fmt.Sprintf(problemNoSpaceIn, l.opts.stateSecret().Name)}
	}
	return out
}

// offered returns the names of the services to advertise without a certificate.
func (l *loop) offered(ctx context.Context, at time.Time) map[string]bool {
	l.offerAt = time.Time{}
	if l.https() != plan.HTTPSOn {
		return nil
	}
	statuses := l.issuer.Statuses()
	for ref, c := range l.terminator.Certificates() {
		if c.Usable {
			delete(statuses, ref.Domain)
		}
	}
	offered, retries, next := l.offers.step(at, statuses)
	l.offerAt = next
	for _, domain := range retries {
		if err := l.issuer.Again(ctx, domain); err != nil {
			l.failed(at, "Cannot get certificates", err)
		}
	}
	return offered
}

// anonymous reports whether tailscaled does not send the addresses of clients. While its version is
// unknown, what a restarted agent serves says so.
func (l *loop) anonymous() bool {
	if l.tailnet.Version != "" {
		return !tailscaled.SendsClients(l.tailnet.Version)
	}
	for _, ts := range l.terminator.Serving() {
		if slices.ContainsFunc(ts, func(t plan.Termination) bool { return t.Anonymous }) {
			return true
		}
	}
	return false
}

// terminateTLS has the terminator serve the wanted services, and leaving ones as long as
// tailscaled forwards to them.
func (l *loop) terminateTLS(ctx context.Context, at time.Time, services []plan.Service) {
	wanted := plan.TerminationsOf(services)
	planned := map[string]bool{}
	for _, s := range services {
		planned[s.Name] = true
	}
	for name, ts := range l.terminator.Serving() {
		if !planned[name] && l.handlers[name] != nil {
			wanted[name] = ts
		}
	}
	if err := l.terminator.Set(ctx, wanted); err != nil {
		l.failed(at, "Cannot keep certificates for a restart of the agent", err)
	}
}

// https reports whether the tailnet provides certificates.
func (l *loop) https() plan.HTTPS {
	switch {
	case !l.tailnet.Running || !l.tailnet.HTTPSKnown:
		return plan.HTTPSUnknown
	case l.tailnet.HTTPS:
		return plan.HTTPSOn
	default:
		return plan.HTTPSOff
	}
}

// certificates returns the number of certificates that Tailscale provides by state, and when the
// first of all certificates in use expires. Only the issuer counts them.
func (l *loop) certificates() (states map[string]int, expiry time.Time) {
	states = map[string]int{}
	usable := map[string]bool{}
	for ref, c := range l.terminator.Certificates() {
		usable[ref.Domain] = c.Usable
		if c.Usable && !c.NotAfter.IsZero() && (expiry.IsZero() || c.NotAfter.Before(expiry)) {
			expiry = c.NotAfter
		}
	}
	for name, st := range l.issuer.Statuses() {
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
	states[stateNoSpace] = len(l.store.full)
	return states, expiry
}

// expiry returns when the next certificate expires. Zero means never.
func (l *loop) expiry(at time.Time) time.Time {
	var out time.Time
	for _, c := range l.terminator.Certificates() {
		// One is valid at that time itself.
		out = earliest(at, out, c.NotAfter.Add(time.Nanosecond))
	}
	return out
}

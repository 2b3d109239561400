// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/terminate"
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

// An issuer gets certificates from Tailscale. See issue.Issuer.
type issuer interface {
	Set(ctx context.Context, session int, domains []string) error
	Grant(domains []string)
	Statuses() map[string]issue.Status
	Problems() map[string]string
	Again(ctx context.Context, domain string) error
}

// newIssuer returns the pod's issuer: one pod of a group gets the certificates for all.
func (a *Agent) newIssuer(ctx context.Context) issuer {
	if a.opts.PodName != a.opts.issuer() || a.opts.Egress.ConfigMap != "" {
		return issue.None{}
	}
	return issue.New(ctx, a.local, func() { a.do(ctx, func(*loop) {}) }, a.log)
}

// getCertificates has tailscaled get certificates for the services from Tailscale, if the
// tailnet provides them. Until this is known, the last request remains.
func (l *loop) getCertificates(ctx context.Context, now time.Time, services []plan.Service) {
	if l.https() == plan.HTTPSUnknown {
		return
	}
	var domains []string
	if l.https() == plan.HTTPSOn {
		domains = plan.Domains(services)
	}
	if err := l.issuer.Set(ctx, l.tailnet.Session, domains); err != nil {
		l.failed(now, "Cannot get certificates", err)
	}
	l.issuer.Grant(l.tailnet.CertDomains)
}

// offered returns the names of the services to advertise without a certificate.
func (l *loop) offered(ctx context.Context, now time.Time) map[string]bool {
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
	offered, again, next := l.offers.step(now, statuses)
	l.offerAt = next
	for _, domain := range again {
		if err := l.issuer.Again(ctx, domain); err != nil {
			l.failed(now, "Cannot get certificates", err)
		}
	}
	return offered
}

// terminateTLS has the terminator serve the wanted services, and leaving ones as long as
// tailscaled forwards to them.
func (l *loop) terminateTLS(ctx context.Context, now time.Time, services []plan.Service) {
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
		l.failed(now, "Cannot keep certificates for a restart of the agent", err)
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

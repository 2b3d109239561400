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

// fileTLS is the one file of Options.TLSDir.
const fileTLS = "tls.json"

// newEnder returns what ends TLS with certificates of Secrets.
func (a *Agent) newEnder(ctx context.Context) *terminate.Server {
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

// issuer is the machine of the pod's group that gets the certificates that Tailscale
// provides: the first. Its state Secret holds them.
func (o Options) issuer() string {
	i := strings.LastIndexByte(o.PodName, '-')
	if i < 0 {
		return o.PodName
	}
	return o.PodName[:i] + "-0"
}

// newIssuer returns what gets certificates, in the pod that does. Others have none.
func (a *Agent) newIssuer(ctx context.Context) *issue.Issuer {
	if a.opts.PodName != a.opts.issuer() || a.opts.Egress.ConfigMap != "" {
		return nil
	}
	return issue.New(ctx, a.local, func() { a.do(ctx, func(*loop) {}) }, a.log)
}

// getCertificates has tailscaled get the certificates that services want of
// Tailscale, while it can. While that is not known it goes on with what it was asked.
func (l *loop) getCertificates(ctx context.Context, now time.Time, services []plan.Service) {
	if l.issuer == nil || l.https() == plan.HTTPSUnknown {
		return
	}
	var domains []string
	if l.https() == plan.HTTPSOn {
		domains = plan.Domains(services)
	}
	if err := l.issuer.Set(ctx, l.tailnet.Session, domains); err != nil {
		l.failed(now, "Cannot get certificates", err)
	}
}

// issuing says why certificates cannot be had.
func (l *loop) issuing() map[string]string {
	if l.issuer == nil {
		return nil
	}
	return l.issuer.Problems()
}

// offered returns the names of the services to advertise without a certificate.
func (l *loop) offered(ctx context.Context, now time.Time) map[string]bool {
	l.offerAt = time.Time{}
	if l.issuer == nil || l.https() != plan.HTTPSOn {
		return nil
	}
	statuses := l.issuer.Statuses()
	for ref, c := range l.ender.Certificates() {
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

// endTLS has TLS ended for what is wanted, and for what nobody wants any more while
// tailscaled forwards to it still.
func (l *loop) endTLS(ctx context.Context, now time.Time, services []plan.Service) {
	wanted := plan.TerminationsOf(services)
	planned := map[string]bool{}
	for _, s := range services {
		planned[s.Name] = true
	}
	for name, ts := range l.ender.Serving() {
		if !planned[name] && l.handlers[name] != nil {
			wanted[name] = ts
		}
	}
	if err := l.ender.Set(ctx, wanted); err != nil {
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

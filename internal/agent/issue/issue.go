// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package issue has tailscaled get the certificates that Tailscale provides, and
// renew them. Tailscaled keeps them in its state Secret, where all machines of a
// group read them: one of them asks, so that the certificate authority's limits
// count each name once. TLS is ended in package terminate.
package issue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"tailscale.com/client/local"
	"tailscale.com/ipn"
	"tailscale.com/kube/certs"
	"tailscale.com/kube/localclient"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// maxProblem is how much of an error is told, in bytes.
const maxProblem = 300

// A Client is what of tailscaled's LocalAPI is needed.
type Client interface {
	WatchIPNBus(ctx context.Context, mask ipn.NotifyWatchOpt) (*local.IPNBusWatcher, error)
	CertDomains(ctx context.Context) ([]string, error)
	CertPair(ctx context.Context, domain string) (cert, key []byte, err error)
}

// An Issuer asks for certificates, each as soon as control lets the machine have it
// and then once a day, for tailscaled to renew what is due. After a failure it asks
// again by the schedule that Let's Encrypt recommends, of minutes to a day.
type Issuer struct {
	manager *certs.CertManager
	changed func()
	log     logging.Logger

	// session of tailscaled that is asked, and the names that it is asked for. Only
	// Set touches them.
	session int
	domains []string

	// mu guards problems: why names have no certificate, or no new one.
	mu       sync.Mutex
	problems map[string]string
}

// New returns an Issuer that asks for nothing. It calls changed, from goroutines of
// its own, when what Problems returns has changed.
func New(c Client, changed func(), log logging.Logger) *Issuer {
	i := &Issuer{changed: changed, log: log, problems: map[string]string{}}
	i.manager = certs.NewCertManager(asked{Client: c, issuer: i}, func(format string, args ...any) {
		log.Debug("Getting certificates", "message", strings.TrimSpace(fmt.Sprintf(format, args...)))
	})
	return i
}

// Set makes domains the ones to have certificates for, until ctx ends. session is
// that of tailscaled: a new one is asked anew, as it may have lost what it had. It
// must not be called from several goroutines.
func (i *Issuer) Set(ctx context.Context, session int, domains []string) error {
	domains = slices.Compact(slices.Sorted(slices.Values(domains)))
	if session == i.session && slices.Equal(domains, i.domains) {
		return nil
	}
	i.mu.Lock()
	maps.DeleteFunc(i.problems, func(name, _ string) bool { return !slices.Contains(domains, name) })
	i.mu.Unlock()
	if session != i.session {
		if err := i.manager.EnsureCertLoops(ctx, serveConfig(nil)); err != nil {
			return err
		}
	}
	if err := i.manager.EnsureCertLoops(ctx, serveConfig(domains)); err != nil {
		return err
	}
	i.session, i.domains = session, domains
	return nil
}

// Problems returns, by name, why the last attempt has failed.
func (i *Issuer) Problems() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.problems)
}

// note how an attempt has ended.
func (i *Issuer) note(domain string, err error) {
	problem := ""
	if err != nil {
		problem = strings.Join(strings.Fields(err.Error()), " ")
		problem = problem[:min(len(problem), maxProblem)]
		i.log.Info("Cannot get certificate", "domain", domain, "error", problem)
	}
	i.mu.Lock()
	before := i.problems[domain]
	if problem == "" {
		delete(i.problems, domain)
	} else {
		i.problems[domain] = problem
	}
	i.mu.Unlock()
	if before != problem {
		i.changed()
	}
}

// serveConfig that tells a CertManager of domains. Tailscaled never sees it.
func serveConfig(domains []string) *ipn.ServeConfig {
	svc := &ipn.ServiceConfig{TCP: make(map[uint16]*ipn.TCPPortHandler, len(domains))}
	for n, d := range domains {
		svc.TCP[uint16(n+1)] = &ipn.TCPPortHandler{TerminateTLS: d}
	}
	return &ipn.ServeConfig{Services: map[tailcfg.ServiceName]*ipn.ServiceConfig{"svc:certificates": svc}}
}

// asked notes what comes of the questions to tailscaled. A CertManager uses no
// method but those below.
type asked struct {
	localclient.LocalClient
	Client

	issuer *Issuer
}

// WatchIPNBus follows tailscaled.
func (a asked) WatchIPNBus(ctx context.Context, mask ipn.NotifyWatchOpt) (localclient.IPNBusWatcher, error) {
	return a.Client.WatchIPNBus(ctx, mask)
}

// CertDomains are the names that the machine may have certificates for.
func (a asked) CertDomains(ctx context.Context) ([]string, error) { return a.Client.CertDomains(ctx) }

// CertPair has tailscaled get, or renew, a certificate.
func (a asked) CertPair(ctx context.Context, domain string) (cert, key []byte, err error) {
	cert, key, err = a.Client.CertPair(ctx, domain)
	if ctx.Err() == nil {
		a.issuer.note(domain, err)
	}
	return cert, key, err
}

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
	"time"

	"tailscale.com/client/local"
	"tailscale.com/ipn"
	"tailscale.com/kube/certs"
	"tailscale.com/kube/localclient"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// maxProblem bounds the reported part of an error, in bytes.
const maxProblem = 300

// attemptTimeout bounds one attempt. It is CertManager's own
// (tailscale.com/kube/certs, runCertLoop).
const attemptTimeout = 30 * time.Minute

// A Client is what of tailscaled's LocalAPI is needed.
type Client interface {
	WatchIPNBus(ctx context.Context, mask ipn.NotifyWatchOpt) (*local.IPNBusWatcher, error)
	CertDomains(ctx context.Context) ([]string, error)
	CertPair(ctx context.Context, domain string) (cert, key []byte, err error)
}

// An Issuer asks for certificates, each as soon as control lets the machine have it
// and then once a day, for tailscaled to renew what is due. After a failure it asks
// again by the schedule that Let's Encrypt recommends, of minutes to a day.
//
// An attempt under way is never broken off, whatever becomes of its name: tailscaled
// gives an order up when its client goes, and if the certificate was issued by then
// the next attempt has another one issued.
type Issuer struct {
	manager *certs.CertManager
	get     func(domain string) error
	changed func()
	log     logging.Logger

	// domains that tailscaled is asked for. Only Set touches them.
	domains []string

	// mu guards what is below.
	mu sync.Mutex

	// session of tailscaled that is asked.
	session int

	// problems are why names have no certificate, or no new one. Names that are
	// not in it are not wanted, and those with none have an empty one.
	problems map[string]string

	// attempts under way, by name.
	attempts map[string]*attempt

	// asked are the wanted names that tailscaled was asked for in this session: control
	// had granted them by then.
	asked map[string]bool
}

// A Status is how far a name without a certificate is.
type Status struct {
	// Asked reports whether tailscaled was asked for the certificate. It is asked once
	// control has granted the name.
	Asked bool

	// Problem is why the last attempt has failed. Empty if none has.
	Problem string
}

// An attempt to get a certificate.
type attempt struct {
	// session of tailscaled that was known when it began.
	session int

	// done is closed at its end, when err says how it ended.
	done chan struct{}
	err  error
}

// New returns an Issuer that asks for nothing. What it asks for is given up when ctx
// ends. It calls changed, from goroutines of its own, when what Problems returns has
// changed.
func New(ctx context.Context, c Client, changed func(), log logging.Logger) *Issuer {
	i := &Issuer{changed: changed, log: log, problems: map[string]string{}, attempts: map[string]*attempt{}, asked: map[string]bool{}}
	i.get = func(domain string) error {
		ctxT, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		_, _, err := c.CertPair(ctxT, domain)
		if ctx.Err() == nil {
			i.record(domain, err)
		}
		return err
	}
	i.manager = certs.NewCertManager(certClient{Client: c, issuer: i}, func(format string, args ...any) {
		log.Debug("Getting certificates", "message", strings.TrimSpace(fmt.Sprintf(format, args...)))
	})
	return i
}

// Set makes domains the ones to have certificates for, until ctx ends. session is
// that of tailscaled: a new one is asked again, as it may have lost what it had. It
// must not be called from several goroutines.
func (i *Issuer) Set(ctx context.Context, session int, domains []string) error {
	domains = slices.Compact(slices.Sorted(slices.Values(domains)))
	same := session == i.begin(session, domains)
	if same && slices.Equal(domains, i.domains) {
		return nil
	}
	if !same {
		i.domains = nil
		if err := i.manager.EnsureCertLoops(ctx, serveConfig(nil)); err != nil {
			return err
		}
	}
	if err := i.manager.EnsureCertLoops(ctx, serveConfig(domains)); err != nil {
		return err
	}
	i.domains = domains
	return nil
}

// begin a session, in which domains are wanted. It returns the one before.
func (i *Issuer) begin(session int, domains []string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.session
	i.session = session
	problems := make(map[string]string, len(domains))
	for _, d := range domains {
		problems[d] = i.problems[d]
	}
	i.problems = problems
	maps.DeleteFunc(i.asked, func(d string, _ bool) bool {
		_, wanted := problems[d]
		return !wanted || before != session
	})
	return before
}

// Statuses returns how far each wanted name is.
func (i *Issuer) Statuses() map[string]Status {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make(map[string]Status, len(i.problems))
	for d, problem := range i.problems {
		out[d] = Status{Asked: i.asked[d], Problem: problem}
	}
	return out
}

// Again asks for a name's certificate as soon as control grants the name, instead of
// after the pause that follows a failure. It must not be called while Set runs.
func (i *Issuer) Again(ctx context.Context, domain string) error {
	others := slices.DeleteFunc(slices.Clone(i.domains), func(d string) bool { return d == domain })
	if len(others) == len(i.domains) {
		return nil
	}
	if err := i.manager.EnsureCertLoops(ctx, serveConfig(others)); err != nil {
		return err
	}
	i.mu.Lock()
	delete(i.asked, domain)
	i.mu.Unlock()
	return i.manager.EnsureCertLoops(ctx, serveConfig(i.domains))
}

// Problems returns, by name, why the last attempt has failed.
func (i *Issuer) Problems() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := maps.Clone(i.problems)
	maps.DeleteFunc(out, func(_, problem string) bool { return problem == "" })
	return out
}

// cut a text to so many bytes, at most, between two characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// record how an attempt has ended.
func (i *Issuer) record(domain string, err error) {
	problem := ""
	if err != nil {
		problem = strings.Join(strings.Fields(err.Error()), " ")
		problem = cut(problem, maxProblem)
		i.log.Info("Cannot get certificate", "domain", domain, "error", problem)
	}
	i.mu.Lock()
	before, wanted := i.problems[domain]
	if wanted {
		i.problems[domain] = problem
	}
	i.mu.Unlock()
	if wanted && before != problem {
		i.changed()
	}
}

// attempt returns the attempt for domain that is under way, or begins one.
func (i *Issuer) attempt(domain string) *attempt {
	i.mu.Lock()
	defer i.mu.Unlock()
	if a := i.attempts[domain]; a != nil {
		return a
	}
	a := &attempt{session: i.session, done: make(chan struct{})}
	i.attempts[domain] = a
	if _, wanted := i.problems[domain]; wanted {
		i.asked[domain] = true
	}
	go func() {
		defer close(a.done)
		a.err = i.get(domain)
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.attempts, domain)
	}()
	return a
}

// outdated reports whether tailscaled may be another one since a began.
func (i *Issuer) outdated(a *attempt) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return a.session != i.session
}

// serveConfig returns a serve config that lists the domains for a CertManager. Tailscaled
// never sees it.
func serveConfig(domains []string) *ipn.ServeConfig {
	svc := &ipn.ServiceConfig{TCP: make(map[uint16]*ipn.TCPPortHandler, len(domains))}
	for n, d := range domains {
		svc.TCP[uint16(n+1)] = &ipn.TCPPortHandler{TerminateTLS: d}
	}
	return &ipn.ServeConfig{Services: map[tailcfg.ServiceName]*ipn.ServiceConfig{"svc:certificates": svc}}
}

// certClient has a CertManager's questions put to tailscaled. It uses no method but those
// below.
type certClient struct {
	localclient.LocalClient
	Client

	issuer *Issuer
}

// WatchIPNBus follows tailscaled.
func (a certClient) WatchIPNBus(ctx context.Context, mask ipn.NotifyWatchOpt) (localclient.IPNBusWatcher, error) {
	return a.Client.WatchIPNBus(ctx, mask)
}

// CertDomains are the names that the machine may have certificates for.
func (a certClient) CertDomains(ctx context.Context) ([]string, error) {
	return a.Client.CertDomains(ctx)
}

// CertPair waits until tailscaled has got, or renewed, a certificate, which it does not
// return: it is in the state Secret. It may be an attempt that was begun for who asked
// before, and that goes on when ctx ends.
func (a certClient) CertPair(ctx context.Context, domain string) (cert, key []byte, err error) {
	for {
		t := a.issuer.attempt(domain)
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-t.done:
		}
		// What ended with the tailscaled before says nothing of this one.
		if t.err == nil || !a.issuer.outdated(t) {
			return nil, nil, t.err
		}
	}
}

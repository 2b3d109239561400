// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package issue has tailscaled get and renew the certificates that Tailscale provides.
// Tailscaled keeps them in its state Secret, where all machines of a group read them. Only one
// machine requests them, so that each name counts once toward the limits of the certificate
// authority. Package terminate terminates TLS.
package issue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"tailscale.com/ipn"
	"tailscale.com/kube/certs"
	"tailscale.com/kube/localclient"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// maxProblem bounds the reported part of an error, in bytes.
const maxProblem = 300

// attemptTimeout bounds one attempt. CertManager uses the same timeout
// (tailscale.com/kube/certs, runCertLoop).
const attemptTimeout = 30 * time.Minute

// A Client has the methods of tailscaled's LocalAPI that an Issuer needs.
type Client interface {
	CertPair(ctx context.Context, domain string) (cert, key []byte, err error)
}

// An Issuer requests certificates: each as soon as control grants the name to the machine, and
// then once a day, so that tailscaled renews certificates that are due. After a failure it
// retries by the schedule that Let's Encrypt recommends, from minutes to a day.
//
// An attempt under way is never cancelled, even if its name is no longer wanted: tailscaled
// abandons an order when its client disconnects, and if the certificate was issued by then, the
// next attempt would order another one.
type Issuer struct {
	manager *certs.CertManager
	get     func(domain string) error
	changed func()
	log     logging.Logger

	// domains are the names to request certificates for. Only Set accesses them.
	domains []string

	// mu guards the fields below.
	mu sync.Mutex

	// session is the session of the tailscaled that gets the requests.
	session int

	// problems holds, for each wanted name, why it has no certificate or no renewed one. The text
	// is empty if there is no problem. Names without an entry are not wanted.
	problems map[string]string

	// attempts holds the attempts under way, by name.
	attempts map[string]*attempt

	// asked holds the wanted names for which a certificate was requested from tailscaled in this
	// session: control had granted these names by then.
	asked map[string]bool

	// granted are the names that control grants to the machine. When they change, regranted is
	// closed and replaced.
	granted   []string
	regranted chan struct{}
}

// A Status is the progress of a name that has no certificate.
type Status struct {
	// Asked reports whether a certificate was requested from tailscaled. This happens once control
	// has granted the name.
	Asked bool

	// Problem is the error of the last attempt. Empty if it did not fail.
	Problem string
}

// An attempt is one request for a certificate.
type attempt struct {
	// session is the session of tailscaled that was known when the attempt began.
	session int

	// done is closed when the attempt ends. err is its result.
	done chan struct{}
	err  error
}

// New returns an Issuer without names. It gives up all requests when ctx is done. It calls
// changed from separate goroutines when the result of Problems has changed.
func New(ctx context.Context, c Client, changed func(), log logging.Logger) *Issuer {
	i := &Issuer{changed: changed, log: log, problems: map[string]string{}, attempts: map[string]*attempt{}, asked: map[string]bool{}, regranted: make(chan struct{})}
	i.get = func(domain string) error {
		ctxT, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		_, _, err := c.CertPair(ctxT, domain)
		if ctx.Err() == nil {
			i.record(domain, err)
		}
		return err
	}
	i.manager = certs.NewCertManager(certClient{issuer: i}, func(format string, args ...any) {
		log.Debug("Getting certificates", "message", strings.TrimSpace(fmt.Sprintf(format, args...)))
	})
	return i
}

// Set replaces the names to have certificates for, until ctx is done. session is the session of
// tailscaled: in a new session all certificates are requested again, because tailscaled may
// have lost them. Set is not safe for concurrent use.
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

// Grant replaces the names that control grants to the machine. A wanted name is requested as soon
// as it is granted.
func (i *Issuer) Grant(domains []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if slices.Equal(domains, i.granted) {
		return
	}
	i.granted = slices.Clone(domains)
	close(i.regranted)
	i.regranted = make(chan struct{})
}

// grants returns the names that control grants, and a channel that is closed when they change.
func (i *Issuer) grants() ([]string, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.granted, i.regranted
}

// begin starts a session with the wanted domains, and returns the previous session.
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

// Statuses returns the status of each wanted name.
func (i *Issuer) Statuses() map[string]Status {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make(map[string]Status, len(i.problems))
	for d, problem := range i.problems {
		out[d] = Status{Asked: i.asked[d], Problem: problem}
	}
	return out
}

// Again requests a name's certificate as soon as control grants the name, instead of after the
// pause that follows a failure. It must not be called while Set runs.
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

// Problems returns the error of the last attempt, by name.
func (i *Issuer) Problems() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := maps.Clone(i.problems)
	maps.DeleteFunc(out, func(_, problem string) bool { return problem == "" })
	return out
}

// cut shortens a text to at most so many bytes without splitting a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// record records the result of an attempt.
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

// attempt returns the attempt under way for domain, or starts one.
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

// outdated reports whether tailscaled may have been replaced since a began.
func (i *Issuer) outdated(a *attempt) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return a.session != i.session
}

// serveConfig returns a serve config that lists the domains for a CertManager. It is never sent
// to tailscaled.
func serveConfig(domains []string) *ipn.ServeConfig {
	svc := &ipn.ServiceConfig{TCP: make(map[uint16]*ipn.TCPPortHandler, len(domains))}
	for n, d := range domains {
		svc.TCP[uint16(n+1)] = &ipn.TCPPortHandler{TerminateTLS: d}
	}
	return &ipn.ServeConfig{Services: map[tailcfg.ServiceName]*ipn.ServiceConfig{"svc:certificates": svc}}
}

// A certClient passes a CertManager's requests on to tailscaled. The CertManager calls only the
// methods below.
type certClient struct {
	localclient.LocalClient

	issuer *Issuer
}

// WatchIPNBus watches the names that control grants. A CertManager waits for its name with the
// mask NotifyInitialNetMap, which tailscaled 1.104 refuses with 400 (tailscale.com ipn/backend.go,
// ValidateNotifyWatchOpt), and gets a whole netmap for each name. The agent's own watch knows the
// names with every version.
func (a certClient) WatchIPNBus(ctx context.Context, _ ipn.NotifyWatchOpt) (localclient.IPNBusWatcher, error) {
	now := make(chan struct{})
	close(now)
	return &grantWatcher{ctx: ctx, issuer: a.issuer, changed: now}, nil
}

// CertDomains returns the names that the machine can have certificates for.
func (a certClient) CertDomains(context.Context) ([]string, error) {
	domains, _ := a.issuer.grants()
	return domains, nil
}

// A grantWatcher reports changes of the granted names as changes of the node, after which a
// CertManager requests the names (tailscale.com kube/certs, waitForCertDomain). The first one is
// immediate. Not safe for concurrent use.
type grantWatcher struct {
	ctx     context.Context
	issuer  *Issuer
	changed <-chan struct{}
}

// Next waits for a change.
func (w *grantWatcher) Next() (ipn.Notify, error) {
	select {
	case <-w.ctx.Done():
		return ipn.Notify{}, w.ctx.Err()
	case <-w.changed:
	}
	_, w.changed = w.issuer.grants()
	return ipn.Notify{SelfChange: &tailcfg.Node{}}, nil
}

// Close does nothing: there is nothing to close.
func (w *grantWatcher) Close() error { return nil }

// CertPair waits until tailscaled has issued or renewed a certificate. It does not return the
// certificate, which is in the state Secret. The attempt can be one that an earlier caller
// started, and it continues when ctx is done.
func (a certClient) CertPair(ctx context.Context, domain string) (cert, key []byte, err error) {
	for {
		// A CertManager also requests a certificate after it has stopped to wait for the name.
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		t := a.issuer.attempt(domain)
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-t.done:
		}
		// A result that belongs to the previous tailscaled does not apply to this one.
		if t.err == nil || !a.issuer.outdated(t) {
			return nil, nil, t.err
		}
	}
}

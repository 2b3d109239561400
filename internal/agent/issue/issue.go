// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package issue has tailscaled get and renew the certificates that Tailscale provides.
// Tailscaled keeps them in its state Secret, where all machines of a group read them. Only one
// machine requests them, so that each name counts once toward the limits of the certificate
// authority. Package terminate terminates TLS.
//
// An Issuer requests the certificates; pure functions recognize a refusal by a limit, decide which
// certificate tailscaled must replace, and which names fit into the Secret.
package issue

import (
	"cmp"
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

// attemptTimeout bounds one attempt. Issuing takes up to a minute or two. An attempt that a limit
// refuses uses all of the time (package localapi, certClient). CertManager reckons with half an
// hour, because tailscaled may have a queue (tailscale.com/kube/certs, runCertLoop); the Issuer has
// one itself.
const attemptTimeout = 5 * time.Minute

// maxAttempts is how many attempts are under way at a time. Tailscaled 1.102.5 issues those of
// different names at once (tailscale.com feature/acme, lockDomain), and earlier versions one after
// another (kube/certs, EnsureCertLoops, describes the lock), so that an attempt may wait for this
// many.
const maxAttempts = 4

// A Client has the methods of tailscaled's LocalAPI that an Issuer needs.
type Client interface {
	CertPair(ctx context.Context, domain string) (cert, key []byte, err error)
	CertPairWithValidity(ctx context.Context, domain string, minValidity time.Duration) (cert, key []byte, err error)
}

// Options are the options of an Issuer.
type Options struct {
	// Directory is the URL of the ACME directory that tailscaled is configured with. Empty means
	// that it is not known to be another than Let's Encrypt's.
	Directory string

	// Timeout bounds an attempt. Zero means attemptTimeout.
	Timeout time.Duration

	// Changed is called from separate goroutines when a status has changed.
	Changed func()

	// Attempted is called from separate goroutines with the result of each attempt.
	Attempted func(Result)

	Log logging.Logger
}

// A Result is the result of an attempt.
type Result string

// Results of attempts.
const (
	Issued  Result = "success"
	Limited Result = "limited"
	Failed  Result = "failure"
)

// An Issuer requests certificates: each as soon as control grants the name to the machine, and
// then once a day, so that tailscaled renews certificates that are due. After a failure it
// retries by the schedule that Let's Encrypt recommends, from minutes to a day, and after the
// refusal by a limit at the time that the refusal names.
//
// At most maxAttempts are under way at a time. The others wait for their turn.
//
// An attempt under way is never cancelled, even if its name is no longer wanted: tailscaled
// abandons an order when its client disconnects, and if the certificate was issued by then, the
// next attempt would order another one.
type Issuer struct {
	// ctx ends all requests.
	ctx     context.Context
	client  Client
	manager *certs.CertManager

	// opts are constant, except Directory, which mu guards.
	opts Options

	// slots limits the attempts under way.
	slots chan struct{}

	// domains are the names to request certificates for. Only Set accesses them.
	domains []string

	// mu guards the fields below.
	mu sync.Mutex

	// session is the session of the tailscaled that gets the requests.
	session int

	// wanted holds the status of each wanted name.
	wanted map[string]Status

	// attempts holds the attempts under way and the waiting ones, by name.
	attempts map[string]*attempt

	// refusals holds the times at which a limit's refusals of a name end. They outlast sessions, and the wish
	// for a name: another request would be refused, too.
	refusals map[string]time.Time

	// granted are the names that control grants to the machine. When they change, regranted is
	// closed and replaced.
	granted   []string
	regranted chan struct{}

	// closed is until when a limit refuses all names without a certificate, reason is its refusal, and
	// issued holds the names that have one.
	closed time.Time
	reason string
	issued map[string]bool
}

// A Status is the progress of a wanted name.
type Status struct {
	// Requested reports whether a certificate was requested from tailscaled in this session, or will
	// be when it is the name's turn. This happens once control has granted the name.
	Requested bool

	// Began is when the last attempt began: the one under way, or the one that ended last. Zero if
	// none did.
	Began time.Time

	// Problem is the error of the last attempt to get or renew the certificate. Empty if it did not
	// fail.
	Problem string

	// Limited reports whether a limit of the certificate authority is the problem, and LimitEnd
	// when it ends. LimitEnd is zero if the certificate authority did not say.
	Limited  bool
	LimitEnd time.Time
}

// An attempt is one request for a certificate.
type attempt struct {
	// session is the session of tailscaled that was known when the attempt began, or before its
	// turn when it was made.
	session int

	// done is closed when the attempt ends. err is its result.
	done chan struct{}
	err  error
}

// New returns an Issuer without names. It gives up all requests when ctx is done.
func New(ctx context.Context, c Client, o Options) *Issuer {
	i := &Issuer{
		ctx: ctx, client: c, opts: o, slots: make(chan struct{}, maxAttempts),
		wanted: map[string]Status{}, attempts: map[string]*attempt{}, refusals: map[string]time.Time{},
		issued: map[string]bool{}, regranted: make(chan struct{}),
	}
	i.manager = certs.NewCertManager(certClient{issuer: i}, func(format string, args ...any) {
		o.Log.Debug("Getting certificates", "message", strings.TrimSpace(fmt.Sprintf(format, args...)))
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
	previous := i.session
	i.session = session
	maps.DeleteFunc(i.refusals, func(_ string, limitEnd time.Time) bool { return limitEnd.Before(time.Now()) })
	wanted := make(map[string]Status, len(domains))
	for _, d := range domains {
		st := i.wanted[d]
		st.Requested = st.Requested && previous == session
		wanted[d] = st
	}
	i.wanted = wanted
	return previous
}

// Statuses returns the status of each wanted name. A name that waits because a limit refuses all
// has their problem.
func (i *Issuer) Statuses() map[string]Status {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := maps.Clone(i.wanted)
	for name, st := range out {
		if i.attempts[name] != nil && st.Problem == "" && !i.issued[name] && i.closed.After(time.Now()) {
			st.Problem, st.Limited, st.LimitEnd = i.reason, true, i.closed
			out[name] = st
		}
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
	if _, wanted := i.wanted[domain]; wanted {
		i.wanted[domain] = Status{}
	}
	i.mu.Unlock()
	return i.manager.EnsureCertLoops(ctx, serveConfig(i.domains))
}

// cut shortens a text to at most so many bytes without splitting a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// record records the result of an attempt that began at a time.
func (i *Issuer) record(domain string, began time.Time, err error) {
	st, result := Status{}, Issued
	if err != nil {
		st.Problem, result = cut(strings.Join(strings.Fields(err.Error()), " "), maxProblem), Failed
		if st.LimitEnd, st.Limited = refusal(err, began, time.Now()); st.Limited {
			result = Limited
		}
		i.opts.Log.Info("Cannot get certificate", "domain", domain, "error", st.Problem, "limited", st.Limited)
	}
	i.opts.Attempted(result)
	i.mu.Lock()
	if st.LimitEnd.IsZero() {
		delete(i.refusals, domain)
	} else {
		i.refusals[domain] = st.LimitEnd
	}
	switch {
	case err == nil:
		i.issued[domain] = true
	case !st.LimitEnd.IsZero() && !i.issued[domain] && general.MatchString(st.Problem):
		i.closed, i.reason = st.LimitEnd, st.Problem
	}
	previous, wanted := i.wanted[domain]
	if wanted {
		st.Requested, st.Began = previous.Requested, previous.Began
		i.wanted[domain] = st
	}
	i.mu.Unlock()
	if wanted && previous != st {
		i.opts.Changed()
	}
}

// attempt returns the attempt under way for domain, or makes one.
func (i *Issuer) attempt(domain string) *attempt {
	i.mu.Lock()
	defer i.mu.Unlock()
	if a := i.attempts[domain]; a != nil {
		return a
	}
	a := &attempt{session: i.session, done: make(chan struct{})}
	i.attempts[domain] = a
	if st, wanted := i.wanted[domain]; wanted {
		st.Requested = true
		i.wanted[domain] = st
	}
	go func() {
		defer close(a.done)
		a.err = i.run(a, domain)
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.attempts, domain)
	}()
	return a
}

// run waits for the attempt's turn, and requests the certificate. If the name is not wanted by
// then, it requests nothing.
func (i *Issuer) run(a *attempt, domain string) error {
	for {
		select {
		case <-i.ctx.Done():
			return i.ctx.Err()
		case <-time.After(time.Until(i.refused(domain))):
		}
		select {
		case <-i.ctx.Done():
			return i.ctx.Err()
		case i.slots <- struct{}{}:
		}
		// A limit may have refused others meanwhile.
		if !i.refused(domain).After(time.Now()) {
			break
		}
		<-i.slots
	}
	defer func() { <-i.slots }()
	began := time.Now()
	if !i.start(a, domain, began) {
		return context.Canceled
	}
	i.opts.Changed()
	ctx, cancel := context.WithTimeout(i.ctx, cmp.Or(i.opts.Timeout, attemptTimeout))
	defer cancel()
	err := i.get(ctx, domain)
	if i.ctx.Err() == nil {
		i.record(domain, began, err)
	}
	return err
}

// refused returns until when a limit refuses the name.
func (i *Issuer) refused(domain string) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.issued[domain] || i.closed.Before(i.refusals[domain]) {
		return i.refusals[domain]
	}
	return i.closed
}

// start records that an attempt begins. It reports false if the name is not wanted.
func (i *Issuer) start(a *attempt, domain string, at time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	st, wanted := i.wanted[domain]
	if wanted {
		a.session, st.Began = i.session, at
		i.wanted[domain] = st
	}
	return wanted
}

// get has tailscaled issue a certificate, or renew one that is due. Tailscaled renews in the
// background and reports no failure, so a certificate that is late is renewed in the
// foreground, and one of another certificate authority is replaced.
func (i *Issuer) get(ctx context.Context, domain string) error {
	chain, _, err := i.client.CertPair(ctx, domain)
	if err != nil {
		return err
	}
	v := validity(chain, i.directory(), time.Now())
	if v <= 0 {
		return nil
	}
	i.opts.Log.Info("Replacing certificate", "domain", domain)
	if chain, _, err = i.client.CertPairWithValidity(ctx, domain, v); err != nil {
		return err
	}
	if strange(leaf(chain), i.directory()) {
		// The directory passes orders on to another one. More orders would change nothing.
		i.mu.Lock()
		defer i.mu.Unlock()
		i.opts.Directory = ""
	}
	return nil
}

func (i *Issuer) directory() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.opts.Directory
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
	closed := make(chan struct{})
	close(closed)
	return &grantWatcher{ctx: ctx, issuer: a.issuer, changed: closed}, nil
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
		t := a.issuer.attempt(domain) //nolint:contextcheck // An attempt outlasts its callers.
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

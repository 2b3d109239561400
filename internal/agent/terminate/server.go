// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminate terminates TLS with certificates from Secrets, forwards requests with
// identity headers, also over TLS to backends whose certificates it verifies, and balances the
// backends of a port. Tailscaled forwards such connections to a loopback port of the agent, with a
// PROXY protocol header that names the client. The package has the listeners, the certificates and
// the forwarding. Package plan assigns the ports and
// explains why tailscaled does not do this itself; package issue gets the certificates from
// Tailscale.
package terminate

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"tailscale.com/client/tailscale/apitype"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// linger is how long a listener stays that is no longer wanted, since tailscaled may read later that
// it is to forward to another address.
const linger = 10 * time.Second

// retryPause is how long to wait before listening again on a port that is in use.
const retryPause = 2 * time.Second

// Options of a Server.
type Options struct {
	// Watch calls fn with a Secret of the pod's namespace, or with nil if it does not exist: once
	// this is known, and after each change, until ctx is done.
	Watch func(ctx context.Context, name string, fn func(*corev1.Secret))

	// WhoIs returns the device of the tailnet that has an address, IP:port.
	WhoIs func(ctx context.Context, addr string) (*apitype.WhoIsResponse, error)

	// Control refuses backends by the dialled addresses, as the Control of a net.Dialer. Nil
	// refuses none.
	Control func(network, address string, c syscall.RawConn) error

	// Changed is called from separate goroutines when the known state of a certificate has changed.
	Changed func()

	// Store keeps the served certificates for a Server that starts again while the API server is
	// unavailable. It holds private keys, so it must not be on a disk.
	Store *atomicdir.Dir

	Log logging.Logger
}

// A Server serves terminations. Its methods are safe for concurrent use.
type Server struct {
	opts Options

	mu        sync.Mutex
	wanted    map[string][]plan.Termination
	listeners map[netip.AddrPort]*listener
	secrets   map[plan.CertificateRef]*secret
	watches   map[string]*watch

	// unstored reports that the last attempt to store what is served has failed.
	unstored bool
}

// A listener is one port, and the termination that it serves.
type listener struct {
	cancel context.CancelFunc
	plan.Termination

	// picker chooses among the backends of a port with several.
	picker *balance.Picker

	// leaving closes the listener. Nil while it is wanted.
	leaving *time.Timer
}

// New returns a Server without terminations.
func New(o Options) *Server {
	return &Server{
		opts:      o,
		wanted:    map[string][]plan.Termination{},
		listeners: map[netip.AddrPort]*listener{},
		secrets:   map[plan.CertificateRef]*secret{},
		watches:   map[string]*watch{},
	}
}

// Serving returns the served terminations by service.
func (s *Server) Serving() map[string][]plan.Termination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.wanted)
}

// Certificates returns the known state of the wanted certificates.
func (s *Server) Certificates() map[plan.CertificateRef]plan.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[plan.CertificateRef]plan.Certificate, len(s.secrets))
	for ref, sec := range s.secrets {
		if sec.loaded {
			out[ref] = plan.Certificate{Usable: sec.usable(), Problem: sec.problem, NotAfter: sec.notAfter()}
		}
	}
	return out
}

// Set replaces the terminations to serve, by service, until ctx is done. Terminations that stay
// are not touched, except that they learn of the backends among which they balance. Removed ones
// accept connections for ten more seconds, and connections are not cut. Set returns an error when what
// is served could not be stored; it serves it nevertheless, and the next call tries to store it again.
func (s *Server) Set(ctx context.Context, terminations map[string][]plan.Termination) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	previous := s.wanted
	s.wanted = maps.Clone(terminations)
	s.balance(time.Now())
	if maps.EqualFunc(previous, terminations, equal) {
		if s.unstored {
			return s.store()
		}
		return nil
	}
	ports := map[netip.AddrPort]plan.Termination{}
	refs := map[plan.CertificateRef]bool{}
	names := map[string]bool{}
	for _, ts := range terminations {
		for _, t := range ts {
			ports[t.Listen] = t
			if t.TLS() {
				refs[t.Certificate()], names[t.Secret] = true, true
			}
		}
	}

	for ref := range refs {
		if s.secrets[ref] == nil {
			s.secrets[ref] = newSecret(ref)
			if w := s.watches[ref.Secret]; w != nil && w.seen {
				s.take(s.secrets[ref], w.last)
				go s.opts.Changed()
			}
		}
		s.watch(ctx, ref.Secret)
	}
	maps.DeleteFunc(s.listeners, func(addr netip.AddrPort, l *listener) bool {
		t, ok := ports[addr]
		switch {
		case !ok && l.leaving == nil:
			l.leaving = time.AfterFunc(linger, func() { s.leave(addr, l) })
			return false
		case !ok:
			return false
		case l.leaving != nil && !l.leaving.Stop(), !t.SameListener(l.Termination):
			l.cancel()
			return true
		}
		l.leaving = nil
		return false
	})
	for at, t := range ports {
		if s.listeners[at] != nil {
			continue
		}
		lctx, cancel := context.WithCancel(ctx)
		l := &listener{cancel: cancel, Termination: t, picker: &balance.Picker{}}
		s.listeners[at] = l
		if t.Balance != nil {
			l.picker.Set(*t.Balance, time.Now())
		}
		go s.listen(lctx, t, l.picker, s.secrets[t.Certificate()])
	}
	maps.DeleteFunc(s.secrets, func(ref plan.CertificateRef, _ *secret) bool { return !refs[ref] })
	maps.DeleteFunc(s.watches, func(name string, w *watch) bool {
		if names[name] {
			return false
		}
		w.cancel()
		return true
	})
	return s.store()
}

// leave closes a listener that is no longer wanted.
func (s *Server) leave(addr netip.AddrPort, l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.cancel()
	if s.listeners[addr] == l {
		delete(s.listeners, addr)
	}
}

// balance gives the listeners that stay their backends. The caller holds the lock.
func (s *Server) balance(at time.Time) {
	for _, ts := range s.wanted {
		for _, t := range ts {
			if l := s.listeners[t.Listen]; l != nil && t.Balance != nil && t.SameListener(l.Termination) {
				l.picker.Set(*t.Balance, at)
			}
		}
	}
}

func equal(a, b []plan.Termination) bool { return slices.EqualFunc(a, b, plan.Termination.Equal) }

// watch watches a Secret, unless it is already watched.
func (s *Server) watch(ctx context.Context, name string) {
	if s.watches[name] != nil {
		return
	}
	wctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel}
	s.watches[name] = w
	go s.opts.Watch(wctx, name, func(o *corev1.Secret) {
		if s.update(wctx, w, name, o) {
			s.opts.Changed()
		}
	})
}

// update updates the certificates from a Secret, and reports whether any of their visible
// states changed.
func (s *Server) update(ctx context.Context, w *watch, name string, o *corev1.Secret) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	w.seen, w.last = true, o
	changed, renewed := false, false
	for ref, sec := range s.secrets {
		if ref.Secret == name {
			c, r := s.take(sec, o)
			changed, renewed = changed || c, renewed || r
		}
	}
	if renewed {
		// The next Set tries again.
		if err := s.store(); err != nil {
			s.opts.Log.Info("Cannot store certificate for a restart of the agent", "secret", name, "error", err)
		}
	}
	return changed || renewed
}

// take updates a certificate from its Secret. It reports whether the certificate's known state
// has changed, and whether the certificate itself was replaced.
func (s *Server) take(sec *secret, o *corev1.Secret) (changed, renewed bool) {
	previous := *sec
	renewed = sec.set(o)
	if renewed {
		s.opts.Log.Info("Using certificate", "secret", sec.ref.String(), "not-after", sec.cert.Load().Leaf.NotAfter)
	}
	changed = sec.loaded != previous.loaded || sec.absent != previous.absent || sec.problem != previous.problem
	if changed && sec.problem != "" {
		s.opts.Log.Info("Cannot use certificate", "secret", sec.ref.String(), "problem", sec.problem)
	}
	return changed, renewed
}

// listen serves a port until ctx is done. If the port is in use, for example by the previous
// listener, it retries. Without a Secret it serves without TLS.
func (s *Server) listen(ctx context.Context, t plan.Termination, p *balance.Picker, sec *secret) {
	for ctx.Err() == nil {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", t.Listen.String())
		if err == nil {
			if t.HTTP {
				err = s.serveHTTP(ctx, l, t, p, sec)
			} else {
				err = s.serveTCP(ctx, l, t, p, sec)
			}
		}
		if ctx.Err() != nil {
			return
		}
		s.opts.Log.Info("Cannot serve port, trying again", "address", t.Listen.String(), "error", errors.Wrap(err, "cannot listen"))
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

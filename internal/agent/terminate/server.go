// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminate ends TLS with certificates of Secrets, and hands on requests with
// identity headers. Tailscaled forwards such connections to a loopback port of
// the agent, with a PROXY protocol header that names the client. Here are the listeners,
// the certificates, and what is handed on. Which port is for which service, and why not
// tailscaled does it, is in package plan; how certificates come from Tailscale is in
// package issue.
package terminate

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"tailscale.com/client/tailscale/apitype"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// retryPause is how long to wait before a port that was taken is tried again.
const retryPause = 2 * time.Second

// Options of a Server.
type Options struct {
	// Watch calls fn with a Secret of the pod's namespace, or with nil if there
	// is none: once that is known, and after each change, until ctx ends.
	Watch func(ctx context.Context, name string, fn func(*corev1.Secret))

	// WhoIs returns the device of the tailnet that has an address, IP:port.
	WhoIs func(ctx context.Context, addr string) (*apitype.WhoIsResponse, error)

	// Control refuses backends by the addresses that are dialled, as that of a
	// net.Dialer. Nil refuses none.
	Control func(network, address string, c syscall.RawConn) error

	// Changed is called, from goroutines of the Server's own, when what is known
	// of a certificate has changed.
	Changed func()

	// Store keeps what is served, for a Server that starts again while the API
	// server is away. It holds private keys, so it must not be on a disk.
	Store *atomicdir.Dir

	Log logging.Logger
}

// A Server does what terminations say. Its methods may be called from several goroutines.
type Server struct {
	opts Options

	mu        sync.Mutex
	wanted    map[string][]plan.Termination
	listeners map[netip.AddrPort]*listener
	secrets   map[plan.CertificateRef]*secret
	watches   map[string]*watch
}

// A listener is one port, and what is served there.
type listener struct {
	cancel context.CancelFunc
	plan.Termination
}

// New returns a Server of nothing.
func New(o Options) *Server {
	return &Server{
		opts:      o,
		wanted:    map[string][]plan.Termination{},
		listeners: map[netip.AddrPort]*listener{},
		secrets:   map[plan.CertificateRef]*secret{},
		watches:   map[string]*watch{},
	}
}

// Serving returns what is served, by service.
func (s *Server) Serving() map[string][]plan.Termination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.wanted)
}

// Certificates returns what is known of those that are wanted.
func (s *Server) Certificates() map[plan.CertificateRef]plan.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[plan.CertificateRef]plan.Certificate, len(s.secrets))
	for ref, sec := range s.secrets {
		if sec.known {
			out[ref] = plan.Certificate{Usable: sec.usable(), Problem: sec.problem}
		}
	}
	return out
}

// Set makes terminations, by service, the ones to serve, until ctx ends. Those that
// stay are not touched, and connections of those that go are not cut. It returns an
// error when they could not be stored; they are served nevertheless.
func (s *Server) Set(ctx context.Context, terminations map[string][]plan.Termination) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if maps.EqualFunc(s.wanted, terminations, equal) {
		return nil
	}
	s.wanted = maps.Clone(terminations)
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
	maps.DeleteFunc(s.listeners, func(at netip.AddrPort, l *listener) bool {
		t, ok := ports[at]
		if ok && t == l.Termination {
			return false
		}
		l.cancel()
		return true
	})
	for at, t := range ports {
		if s.listeners[at] != nil {
			continue
		}
		lctx, cancel := context.WithCancel(ctx)
		s.listeners[at] = &listener{cancel: cancel, Termination: t}
		go s.listen(lctx, t, s.secrets[t.Certificate()])
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

func equal(a, b []plan.Termination) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// watch a Secret, unless that is done already.
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

// update takes over what a Secret holds, and reports whether that changed anything
// that others see.
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
		if err := s.store(); err != nil {
			s.opts.Log.Info("Cannot store certificate for a restart of the agent", "secret", name, "error", err)
		}
	}
	return changed || renewed
}

// take over what the Secret of a certificate holds. It reports whether what is known
// of it has changed, and whether it is another one now.
func (s *Server) take(sec *secret, o *corev1.Secret) (changed, renewed bool) {
	before := *sec
	renewed = sec.set(o)
	if renewed {
		s.opts.Log.Info("Using certificate", "secret", sec.ref.String(), "not-after", sec.cert.Load().Leaf.NotAfter)
	}
	changed = sec.known != before.known || sec.gone != before.gone || sec.problem != before.problem
	if changed && sec.problem != "" {
		s.opts.Log.Info("Cannot use certificate", "secret", sec.ref.String(), "problem", sec.problem)
	}
	return changed, renewed
}

// listen on a port until ctx ends. One that is taken, as it can be by the listener
// before, is tried again. Without TLS there is no Secret.
func (s *Server) listen(ctx context.Context, t plan.Termination, sec *secret) {
	for ctx.Err() == nil {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", t.Listen.String())
		if err == nil {
			if t.HTTP {
				err = s.serveHTTP(ctx, l, t, sec)
			} else {
				err = s.serveTCP(ctx, l, t, sec)
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

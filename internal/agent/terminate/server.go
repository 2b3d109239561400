// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package terminate ends TLS with certificates of Secrets. Tailscaled ends TLS only
// with the certificate that Tailscale provides, so it forwards other connections to
// a loopback port of the agent, with a PROXY protocol header that tells the client.
// Here are the listeners, the certificates, and what is handed on. Which port is
// for which service is decided in package plan.
package terminate

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"sync"
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

	// WhoIs tells who of the tailnet has an address, which is IP:port.
	WhoIs func(ctx context.Context, addr string) (*apitype.WhoIsResponse, error)

	// Changed is called, from goroutines of the Server's own, when what is known
	// of a certificate has changed.
	Changed func()

	// Store keeps what is served, for a Server that starts anew while the API
	// server is away. It holds private keys, so it must not be on a disk.
	Store *atomicdir.Dir

	Log logging.Logger
}

// A Server ends TLS. Its methods may be called from several goroutines.
type Server struct {
	opts Options

	mu        sync.Mutex
	wanted    map[string][]plan.Termination
	listeners map[netip.AddrPort]*listener
	secrets   map[string]*secret
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
		secrets:   map[string]*secret{},
	}
}

// Serving returns what is served, by service.
func (s *Server) Serving() map[string][]plan.Termination {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.wanted)
}

// Certificates returns what is known of the Secrets that are wanted.
func (s *Server) Certificates() map[string]plan.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]plan.Certificate, len(s.secrets))
	for name, sec := range s.secrets {
		if sec.known {
			out[name] = plan.Certificate{Usable: sec.cert.Load() != nil && !sec.gone, Problem: sec.problem}
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
	names := map[string]bool{}
	for _, ts := range terminations {
		for _, t := range ts {
			ports[t.Listen] = t
			names[t.Secret] = true
		}
	}

	for name := range names {
		if s.secrets[name] == nil {
			s.secrets[name] = newSecret()
		}
		s.watch(ctx, name, s.secrets[name])
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
		go s.listen(lctx, t, s.secrets[t.Secret])
	}
	maps.DeleteFunc(s.secrets, func(name string, sec *secret) bool {
		if names[name] {
			return false
		}
		if sec.cancel != nil {
			sec.cancel()
		}
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
func (s *Server) watch(ctx context.Context, name string, sec *secret) {
	if sec.cancel != nil {
		return
	}
	var wctx context.Context
	wctx, sec.cancel = context.WithCancel(ctx)
	go s.opts.Watch(wctx, name, func(o *corev1.Secret) {
		if s.update(wctx, name, sec, o) {
			s.opts.Changed()
		}
	})
}

// update takes over what a Secret holds, and tells whether that changed anything
// that others see.
func (s *Server) update(ctx context.Context, name string, sec *secret, o *corev1.Secret) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	before := *sec
	renewed := sec.set(o)
	if renewed {
		s.opts.Log.Info("Using certificate", "secret", name, "not-after", sec.cert.Load().Leaf.NotAfter)
		if err := s.store(); err != nil {
			s.opts.Log.Info("Cannot store certificate for a restart of the agent", "secret", name, "error", err)
		}
	}
	changed := sec.known != before.known || sec.gone != before.gone || sec.problem != before.problem
	if changed && sec.problem != "" {
		s.opts.Log.Info("Cannot use certificate", "secret", name, "problem", sec.problem)
	}
	return renewed || changed
}

// listen on a port until ctx ends. One that is taken, as it can be by the listener
// before, is tried again.
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
		s.opts.Log.Info("Cannot serve TLS, trying again", "address", t.Listen.String(), "error", errors.Wrap(err, "cannot listen"))
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

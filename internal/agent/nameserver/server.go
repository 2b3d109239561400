// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package nameserver answers DNS questions from a zone, over UDP and TCP.
package nameserver

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/netutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

const (
	// timeout bounds how long a TCP client can take to send its first question, and each further
	// one.
	timeout = 5 * time.Second

	// maxConns bounds the TCP connections at one time. Further connections wait.
	maxConns = 128
)

// A Server answers on several addresses. Its methods are safe for concurrent use.
type Server struct {
	answered func(rcode string)
	log      logging.Logger

	table atomic.Pointer[zone.Table]

	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener
	end       bool
}

// New returns a Server that does not listen yet. It calls answered with the outcome of each
// question.
func New(log logging.Logger, answered func(rcode string)) *Server {
	return &Server{log: log, answered: answered, listeners: map[netip.AddrPort]*listener{}}
}

// Set replaces the zone to answer from.
func (s *Server) Set(t *zone.Table) { s.table.Store(t) }

// Listen listens on the given addresses only, and closes all other listeners. After an error it
// listens on the addresses that succeeded, and the caller can call it again.
func (s *Server) Listen(ctx context.Context, addrs []netip.AddrPort) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end {
		return nil
	}
	for a, l := range s.listeners {
		if !slices.Contains(addrs, a) {
			l.close()
			delete(s.listeners, a)
		}
	}
	var failed error
	for _, a := range addrs {
		if s.listeners[a] != nil {
			continue
		}
		l, err := listen(ctx, a, s)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		s.listeners[a] = l
	}
	return failed
}

// Close closes all listeners, and returns when all goroutines have ended.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = true
	for a, l := range s.listeners {
		l.close()
		delete(s.listeners, a)
	}
}

// ServeDNS answers one question.
func (s *Server) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	m := answer(s.table.Load(), q)
	if _, udp := w.RemoteAddr().(*net.UDPAddr); udp {
		size := dns.MinMsgSize
		if o := q.IsEdns0(); o != nil {
			size = max(size, int(o.UDPSize()))
		}
		m.Truncate(min(size, maxUDP))
	}
	s.answered(dns.RcodeToString[m.Rcode])
	if err := w.WriteMsg(m); err != nil {
		s.log.Debug("Cannot answer a question of DNS", "error", err)
	}
}

// A listener is one address, with UDP and TCP.
type listener struct {
	servers []*dns.Server
	wg      sync.WaitGroup
}

func listen(ctx context.Context, addr netip.AddrPort, s *Server) (*listener, error) {
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, "udp", addr.String())
	if err != nil {
		return nil, errors.Wrapf(err, "cannot listen for DNS over UDP at %s", addr)
	}
	ln, err := lc.Listen(ctx, "tcp", addr.String())
	if err != nil {
		return nil, errors.Join(errors.Wrapf(err, "cannot listen for DNS over TCP at %s", addr), pc.Close())
	}
	l := &listener{}
	l.serve(&dns.Server{PacketConn: pc, Handler: s}, s.log)
	l.serve(&dns.Server{
		Listener: netutil.LimitListener(ln, maxConns), Handler: s,
		ReadTimeout: timeout, WriteTimeout: timeout, IdleTimeout: func() time.Duration { return timeout },
	}, s.log)
	return l, nil
}

// serve runs a DNS server until it is closed. It returns once the server can be closed.
func (l *listener) serve(srv *dns.Server, log logging.Logger) {
	started, ended := make(chan struct{}), make(chan struct{})
	srv.NotifyStartedFunc = func() { close(started) }
	l.servers = append(l.servers, srv)
	l.wg.Go(func() {
		defer close(ended)
		if err := srv.ActivateAndServe(); err != nil {
			log.Info("Cannot serve DNS any more", "error", err)
		}
	})
	select {
	case <-started:
	case <-ended:
	}
}

// close waits until questions under way are answered: reads do not wait for further questions.
func (l *listener) close() {
	for _, srv := range l.servers {
		_ = srv.Shutdown() // It fails for a server that has already ended.
	}
	l.wg.Wait()
}

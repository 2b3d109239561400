// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package localapitest is a tailscaled for tests, as seen through its LocalAPI: a
// bus to watch and a config to reload. It joins no tailnet.
package localapitest

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
)

// A Server is one tailscaled. Stop and Start make it a new one.
type Server struct {
	// Socket that it listens on.
	Socket string

	t        *testing.T
	onReload func()

	mu       sync.Mutex
	srv      *http.Server
	state    ipn.State
	accepted []string
	reloads  int
	denied   bool
	watchers map[chan ipn.Notify]bool
}

// New returns a running server that is not in a tailnet. It calls onReload when
// it is asked to read its config.
func New(t *testing.T, onReload func()) *Server {
	t.Helper()
	s := &Server{
		Socket:   filepath.Join(t.TempDir(), "tailscaled.sock"),
		t:        t,
		onReload: onReload,
		state:    ipn.Starting,
		watchers: make(map[chan ipn.Notify]bool),
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start listens on the socket.
func (s *Server) Start() {
	s.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "unix", s.Socket)
	if err != nil {
		s.t.Fatalf("cannot listen on %q: %v", s.Socket, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /localapi/v0/watch-ipn-bus", s.watch)
	mux.HandleFunc("POST /localapi/v0/reload-config", s.reload)
	mux.HandleFunc("POST /localapi/v0/logout", s.logout)
	srv := &http.Server{Handler: mux} //nolint:gosec // Its only client is the test.
	s.mu.Lock()
	s.srv = srv
	s.mu.Unlock()
	go func() {
		// It ends when the server is closed.
		_ = srv.Serve(l)
	}()
}

// Stop cuts all connections and closes the socket.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The listener may be closed already.
	_ = s.srv.Close()
	s.state, s.accepted = ipn.Starting, nil
}

// Set changes the state, and the services that the node is a host of.
func (s *Server) Set(state ipn.State, accepted ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.accepted = state, accepted
	for c := range s.watchers {
		c <- ipn.Notify{State: &state, SelfChange: &tailcfg.Node{CapMap: s.capMap()}}
	}
}

// Deny refuses to reload the config, as tailscaled does for another user.
func (s *Server) Deny() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = true
}

// Reloads is how often the config was reloaded.
func (s *Server) Reloads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reloads
}

func (s *Server) logout(w http.ResponseWriter, _ *http.Request) {
	s.Set(ipn.NeedsLogin)
	w.WriteHeader(http.StatusNoContent)
}

// State is what tailscaled is in.
func (s *Server) State() ipn.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Disconnect ends all watches, as tailscaled does to a watcher that lags.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.watchers {
		close(c)
		delete(s.watchers, c)
	}
}

func (s *Server) capMap() tailcfg.NodeCapMap {
	m := make(tailcfg.ServiceIPMappings)
	for _, name := range s.accepted {
		m[tailcfg.ServiceName(name)] = nil
	}
	b, err := json.Marshal(m)
	if err != nil {
		s.t.Errorf("cannot encode services: %v", err)
	}
	return tailcfg.NodeCapMap{tailcfg.NodeAttrServiceHost: {tailcfg.RawMessage(b)}}
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	// Large enough that Set never waits for a watcher.
	c := make(chan ipn.Notify, 1000)
	s.mu.Lock()
	s.watchers[c] = true
	first := ipn.Notify{InitialStatus: &ipnstate.Status{
		BackendState: s.state.String(),
		Self:         &ipnstate.PeerStatus{CapMap: s.capMap()},
	}}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, c)
		s.mu.Unlock()
	}()

	enc := json.NewEncoder(w)
	rc := http.NewResponseController(w)
	send := func(n ipn.Notify) bool { return enc.Encode(n) == nil && rc.Flush() == nil }
	if !send(first) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case n, ok := <-c:
			if !ok || !send(n) {
				return
			}
		}
	}
}

func (s *Server) reload(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	denied := s.denied
	if !denied {
		s.reloads++
	}
	s.mu.Unlock()
	if denied {
		http.Error(w, "access denied", http.StatusForbidden)
		return
	}
	s.onReload()
	if _, err := w.Write([]byte(`{"Reloaded":true}`)); err != nil {
		s.t.Logf("cannot answer: %v", err)
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package localapitest provides a fake tailscaled for tests, with the parts of its LocalAPI
// that the agent uses: a bus to watch, a config to reload, and peers to dial. It joins no
// tailnet.
package localapitest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// SelfName is the DNS name of the node itself.
const SelfName = "self.example.ts.net."

// A Server is one fake tailscaled. Stop and Start replace it with a new one.
type Server struct {
	// Socket is the path of the socket that it listens on.
	Socket string

	// Dialer opens connections into the tailnet.
	*Dialer

	t        *testing.T
	onReload func()

	mu       sync.Mutex
	node     node
	srv      *http.Server
	reloads  int
	denied   bool
	watchers map[chan ipn.Notify]bool
	mute     bool
	pinged   []string
	issue    func(domain string) error
	dnsFails int
}

// New returns a running server that is not in a tailnet. It calls onReload when a client
// requests a reload of the config.
func New(t *testing.T, onReload func()) *Server {
	t.Helper()
	s := &Server{
		Socket:   filepath.Join(t.TempDir(), "tailscaled.sock"),
		Dialer:   &Dialer{t: t},
		t:        t,
		onReload: onReload,
		node:     node{t: t, state: ipn.Starting, version: tailscaled.Newest},
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
	mux.HandleFunc("POST /localapi/v0/dial", s.serveDial)
	mux.HandleFunc("POST /localapi/v0/ping", s.ping)
	mux.HandleFunc("GET /localapi/v0/dns-config", s.dnsConfig)
	mux.HandleFunc("GET /localapi/v0/status", s.answer(func() any { return s.node.status() }))
	mux.HandleFunc("GET /localapi/v0/prefs", s.answer(func() any { return s.node.prefs() }))
	mux.HandleFunc("GET /localapi/v0/cert/{domain}", s.cert)
	srv := &http.Server{Handler: mux} //nolint:gosec // Its only client is the test.
	s.mu.Lock()
	s.srv = srv
	s.mu.Unlock()
	go func() {
		// Serve returns when the server is closed.
		_ = srv.Serve(l)
	}()
}

// Stop cuts all connections and closes the socket.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The listener can already be closed.
	_ = s.srv.Close()
	s.node.state, s.node.accepted, s.node.primary = ipn.Starting, nil, nil
}

// Set sets the state, and the services that control accepted the node for.
func (s *Server) Set(state ipn.State, accepted ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.state, s.node.accepted = state, accepted
	for c := range s.watchers {
		c <- s.node.netmap(&state)
	}
}

// SetAddresses sets the node's addresses in the tailnet.
func (s *Server) SetAddresses(addrs ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.addrs = addrs
	for c := range s.watchers {
		c <- s.node.netmap(nil)
	}
}

// SetPrimary sets the addresses of services for which the node is primary.
func (s *Server) SetPrimary(addrs ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.primary = nil
	for _, a := range addrs {
		s.node.primary = append(s.node.primary, netip.PrefixFrom(a, a.BitLen()))
	}
	for c := range s.watchers {
		c <- s.node.netmap(nil)
	}
}

// SetLoginError sets the last error of the login. Empty means none.
func (s *Server) SetLoginError(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.login = text
	for c := range s.watchers {
		c <- ipn.Notify{Health: s.node.health()}
	}
}

// Deny makes the server refuse to reload the config, as tailscaled does for another user.
func (s *Server) Deny() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = true
}

// Reloads returns how often the config was reloaded.
func (s *Server) Reloads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reloads
}

func (s *Server) logout(w http.ResponseWriter, _ *http.Request) {
	s.Set(ipn.NeedsLogin)
	w.WriteHeader(http.StatusNoContent)
}

// State returns the state of the server.
func (s *Server) State() ipn.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node.state
}

// Disconnect ends all watches, as tailscaled does for a watcher that lags.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.watchers {
		close(c)
		delete(s.watchers, c)
	}
}

// SetHTTPS lets the node have certificates for the given names. The server calls issue for each
// request of a certificate. issue can fail.
func (s *Server) SetHTTPS(issue func(domain string) error, domains ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issue, s.node.domains = issue, domains
	for c := range s.watchers {
		c <- s.node.netmap(&s.node.state)
	}
}

func (s *Server) cert(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	issue := s.issue
	s.mu.Unlock()
	if err := issue(r.PathValue("domain")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The agent ignores this answer and reads the state Secret instead.
	if _, err := io.WriteString(w, "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"); err != nil {
		s.t.Logf("cannot answer: %v", err)
	}
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	// The buffer is large enough that Set never waits for a watcher.
	c := make(chan ipn.Notify, 1000)
	s.mu.Lock()
	first, err := s.node.first(r.URL.Query().Get("mask"))
	if err != nil {
		s.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.watchers[c] = true
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

// Peer returns a peer with the given addresses. It also takes traffic for the others.
func Peer(id tailcfg.NodeID, name string, tags, addrs []string, others ...string) *tailcfg.Node {
	n := &tailcfg.Node{ID: id, Name: name + ".example.ts.net.", Tags: tags}
	for _, a := range addrs {
		addr := netip.MustParseAddr(a)
		n.Addresses = append(n.Addresses, netip.PrefixFrom(addr, addr.BitLen()))
	}
	n.AllowedIPs = slices.Clone(n.Addresses)
	for _, o := range others {
		n.AllowedIPs = append(n.AllowedIPs, netip.MustParsePrefix(o))
	}
	return n
}

// SetPeers replaces the whole netmap.
func (s *Server) SetPeers(peers ...*tailcfg.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.peers = peers
	for c := range s.watchers {
		c <- s.node.netmap(nil)
	}
}

// ChangePeers sends a change of the netmap.
func (s *Server) ChangePeers(changed []*tailcfg.Node, removed ...tailcfg.NodeID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.peers = slices.DeleteFunc(slices.Clone(s.node.peers), func(n *tailcfg.Node) bool {
		return slices.Contains(removed, n.ID) || slices.ContainsFunc(changed, func(c *tailcfg.Node) bool { return c.ID == n.ID })
	})
	s.node.peers = append(s.node.peers, changed...)
	n := ipn.Notify{PeersChanged: changed, PeersRemoved: removed}
	if s.node.bus == BusNetmaps {
		n = s.node.netmap(nil)
	}
	for c := range s.watchers {
		c <- n
	}
}

// FailDNSConfig makes the next requests of the DNS config fail.
func (s *Server) FailDNSConfig(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dnsFails = n
}

// SetRecords sets the DNS records of services.
func (s *Server) SetRecords(records ...tailcfg.DNSRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.records = records
	for c := range s.watchers {
		c <- s.node.netmap(nil)
	}
}

// SetRoutes sets whether the node uses the routes of subnet routers.
func (s *Server) SetRoutes(use bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.routes = use
	prefs := (&ipn.Prefs{RouteAll: use}).View()
	for c := range s.watchers {
		c <- ipn.Notify{Prefs: &prefs}
	}
}

// SetMute sets whether devices do not answer pings.
func (s *Server) SetMute(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = mute
}

// Pinged returns the types and addresses of the pings.
func (s *Server) Pinged() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.pinged)
}

// ping answers for devices that the tailnet has, as tailscaled does. The request of a ping without
// an answer lasts until the client ends it.
func (s *Server) ping(w http.ResponseWriter, r *http.Request) {
	ip := r.FormValue("ip")
	s.mu.Lock()
	s.pinged = append(s.pinged, r.FormValue("type")+" "+ip)
	mute := s.mute
	found := slices.ContainsFunc(s.node.peers, func(n *tailcfg.Node) bool {
		return slices.ContainsFunc(n.Addresses, func(p netip.Prefix) bool { return p.Addr().String() == ip })
	})
	s.mu.Unlock()
	if mute {
		<-r.Context().Done()
		return
	}
	res := ipnstate.PingResult{IP: ip}
	if !found {
		res.Err = "no matching peer"
	}
	if err := json.NewEncoder(w).Encode(res); err != nil {
		s.t.Logf("cannot answer: %v", err)
	}
}

func (s *Server) dnsConfig(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dnsFails > 0 {
		s.dnsFails--
		http.Error(w, "busy", http.StatusInternalServerError)
		return
	}
	if s.node.bus == BusNetmaps {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if err := json.NewEncoder(w).Encode(s.node.dns()); err != nil {
		s.t.Logf("cannot answer: %v", err)
	}
}

// answer returns a handler that answers with a part of the state.
func (s *Server) answer(part func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := json.NewEncoder(w).Encode(part()); err != nil {
			s.t.Logf("cannot answer: %v", err)
		}
	}
}

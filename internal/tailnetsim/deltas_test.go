// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/tailcfg"
	"tailscale.com/types/dnstype"
)

// A mapReader is a node's end of a map stream. It keeps what tailscaled keeps of the responses
// (tailscale.com control/controlclient, map.go: updateStateFromResponse and
// updatePeersStateFromResponse), and how many of them were whole maps.
type mapReader struct {
	t      *testing.T
	frames chan []byte
	header http.Header

	responses int
	whole     int
	last      *tailcfg.MapResponse

	self   *tailcfg.Node
	peers  map[tailcfg.NodeID]*tailcfg.Node
	dns    *tailcfg.DNSConfig
	filter []tailcfg.FilterRule
}

func (m *mapReader) Header() http.Header { return m.header }
func (m *mapReader) WriteHeader(int)     {}
func (m *mapReader) Flush()              {}

func (m *mapReader) Write(b []byte) (int, error) {
	m.frames <- bytes.Clone(b)
	return len(b), nil
}

// openStream opens the map stream of a device until the test ends.
func openStream(t *testing.T, s *Server, d *device) *mapReader {
	t.Helper()
	body, err := json.Marshal(tailcfg.MapRequest{NodeKey: d.NodeKey, Stream: true, Version: tailcfg.CurrentCapabilityVersion})
	if err != nil {
		t.Fatalf("cannot encode: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), machineCtx{}, d.Machine))
	m := &mapReader{t: t, frames: make(chan []byte, 1000), header: http.Header{}, peers: map[tailcfg.NodeID]*tailcfg.Node{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.serveMap(m, httptest.NewRequestWithContext(ctx, http.MethodPost, "/machine/map", bytes.NewReader(body)))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return m
}

// until applies responses until the map is as wanted.
func (m *mapReader) until(description string, ok func() bool) {
	m.t.Helper()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case b := <-m.frames:
			m.apply(b)
		case <-deadline:
			m.t.Fatalf("the map never is as wanted: %s", description)
		}
	}
}

func (m *mapReader) apply(b []byte) {
	m.t.Helper()
	if n := binary.LittleEndian.Uint32(b); int(n) != len(b)-4 {
		m.t.Fatalf("a frame of %d bytes says %d", len(b)-4, n)
	}
	r := &tailcfg.MapResponse{}
	if err := json.Unmarshal(b[4:], r); err != nil {
		m.t.Fatalf("cannot decode a response: %v", err)
	}
	if r.KeepAlive || r.PingRequest != nil {
		return
	}
	m.responses++
	m.last = r
	if len(r.Peers) > 0 || r.Domain != "" || r.CollectServices != "" || len(r.UserProfiles) > 0 {
		m.whole++
	}
	if r.Node != nil {
		m.self = r.Node
	}
	if r.DNSConfig != nil {
		m.dns = r.DNSConfig
	}
	if f, ok := r.PacketFilters["base"]; ok {
		m.filter = f
	}
	if len(r.Peers) > 0 {
		clear(m.peers)
		for _, n := range r.Peers {
			m.peers[n.ID] = n
		}
		return
	}
	for _, id := range r.PeersRemoved {
		delete(m.peers, id)
	}
	for _, n := range r.PeersChanged {
		m.peers[n.ID] = n
	}
	for _, c := range r.PeersChangedPatch {
		m.patch(c)
	}
}

func (m *mapReader) patch(c *tailcfg.PeerChange) {
	m.t.Helper()
	n := m.peers[c.NodeID]
	if n == nil {
		m.t.Errorf("a patch is of node %d, which the map does not have", c.NodeID)
		return
	}
	if c.DERPRegion != 0 {
		n.HomeDERP = c.DERPRegion
	}
	if c.Cap != 0 {
		n.Cap = c.Cap
	}
	if c.Endpoints != nil {
		n.Endpoints = c.Endpoints
	}
	if c.Key != nil {
		n.Key = *c.Key
	}
	if c.DiscoKey != nil {
		n.DiscoKey = *c.DiscoKey
	}
	if c.Online != nil {
		n.Online = c.Online
	}
	if c.LastSeen != nil {
		n.LastSeen = c.LastSeen
	}
	if c.KeyExpiry != nil {
		n.KeyExpiry = *c.KeyExpiry
	}
}

// ids returns the peers that the node has.
func (m *mapReader) ids() []tailcfg.NodeID { return slices.Sorted(maps.Keys(m.peers)) }

// diff returns how the kept map differs from a new one.
func (m *mapReader) diff(s *Server, d *device) string {
	m.t.Helper()
	s.mu.Lock()
	whole := s.mapResponseLocked(d)
	s.mu.Unlock()
	b, err := json.Marshal(whole)
	if err != nil {
		m.t.Fatalf("cannot encode: %v", err)
	}
	want := &tailcfg.MapResponse{}
	if err := json.Unmarshal(b, want); err != nil {
		m.t.Fatalf("cannot decode: %v", err)
	}
	got := &tailcfg.MapResponse{Node: m.self, DNSConfig: m.dns, PacketFilters: map[string][]tailcfg.FilterRule{"base": m.filter}}
	for _, id := range m.ids() {
		got.Peers = append(got.Peers, m.peers[id])
	}
	want = &tailcfg.MapResponse{Node: want.Node, DNSConfig: want.DNSConfig, PacketFilters: want.PacketFilters, Peers: want.Peers}
	return cmp.Diff(want, got, cmp.Comparer(func(a, b *tailcfg.Node) bool { return a.Equal(b) }), cmp.Comparer(func(a, b *dnstype.Resolver) bool { return a.Equal(b) }))
}

// deviceOf returns the device of a puppet.
func deviceOf(t *testing.T, s *Server, p Puppet) *device {
	t.Helper()
	id, err := s.Join(p)
	if err != nil {
		t.Fatalf("cannot join: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st.device(id)
}

func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("cannot make a server: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("cannot close: %v", err)
		}
	})
	return s
}

func TestDeltas(t *testing.T) {
	s := newServer(t, Options{Policy: PolicyWithAutoApprover})
	self := deviceOf(t, s, Puppet{NodeID: "nSelf", Hostname: "self", Tags: []string{"tag:k8s"}})
	a := deviceOf(t, s, Puppet{NodeID: "nA", Hostname: "a", Tags: []string{"tag:k8s"}})
	b := deviceOf(t, s, Puppet{NodeID: "nB", Hostname: "b", Tags: []string{"tag:k8s"}})
	m := openStream(t, s, self)
	m.until("the first response has both peers", func() bool { return len(m.peers) == 2 })
	if m.responses != 1 || m.whole != 1 {
		t.Fatalf("the first response is a whole map: got %d of %d", m.whole, m.responses)
	}

	v := &service{Name: "svc:web", Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}}
	steps := []struct {
		reason string
		action func()
		done   func() bool
		// patch is whether the change fits into a patch.
		patch bool
	}{
		{
			reason: "A device that goes offline is a patch.",
			action: func() { s.SetOnline("nB", false) },
			done:   func() bool { n := m.peers[tailcfg.NodeID(b.ID)]; return n.Online != nil && !*n.Online },
			patch:  true,
		},
		{
			reason: "One that comes back is a patch, too.",
			action: func() { s.SetOnline("nB", true) },
			done:   func() bool { n := m.peers[tailcfg.NodeID(b.ID)]; return n.Online != nil && *n.Online },
			patch:  true,
		},
		{
			reason: "A new device is one changed peer.",
			action: func() { deviceOf(t, s, Puppet{NodeID: "nC", Hostname: "c", Tags: []string{"tag:k8s"}}) },
			done:   func() bool { return len(m.peers) == 3 },
		},
		{
			reason: "A new service is in the DNS config and the packet filter at most.",
			action: func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				if err := s.allocateLocked(v); err != nil {
					t.Errorf("cannot allocate: %v", err)
				}
				s.st.Services[v.Name] = v
				s.changedLocked()
			},
			done: func() bool { return m.dns != nil && len(m.dns.ExtraRecords) == 2 },
		},
		{
			reason: "The first host of a service has its addresses: a changed peer.",
			action: func() { offer(t, s, "nA", "svc:web") },
			done:   func() bool { return len(m.peers[tailcfg.NodeID(a.ID)].PrimaryRoutes) == 2 },
		},
		{
			reason: "Failover moves them: two changed peers.",
			action: func() {
				offer(t, s, "nB", "svc:web")
				s.SetOnline("nA", false)
			},
			done: func() bool { return len(m.peers[tailcfg.NodeID(b.ID)].PrimaryRoutes) == 2 },
		},
		{
			reason: "A deleted device is a removed peer.",
			action: func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.removeLocked(s.st.device("nC"))
			},
			done: func() bool { return len(m.peers) == 2 },
		},
		{
			reason: "The last peers are removed by name: an empty list would mean no change.",
			action: func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.removeLocked(a)
				s.removeLocked(b)
			},
			done: func() bool { return len(m.peers) == 0 },
		},
	}
	for _, st := range steps {
		st.action()
		m.until(st.reason, st.done)
		m.until(st.reason, func() bool { return m.diff(s, self) == "" })
		if st.patch && (len(m.last.PeersChangedPatch) == 0 || len(m.last.PeersChanged) > 0) {
			t.Errorf("%s Got %d changed peers and %d patches", st.reason, len(m.last.PeersChanged), len(m.last.PeersChangedPatch))
		}
	}
	if m.whole != 1 {
		t.Errorf("only the first response is a whole map: got %d of %d", m.whole, m.responses)
	}
}

// offer makes a puppet host services on port 80.
func offer(t *testing.T, s *Server, node string, services ...string) {
	t.Helper()
	var os []Offer
	for _, v := range services {
		os = append(os, Offer{Service: v, Ports: []uint16{80}})
	}
	if err := s.SetOffers(node, os...); err != nil {
		t.Errorf("cannot set offers: %v", err)
	}
}

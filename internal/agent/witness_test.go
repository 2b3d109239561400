// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// A hostNet answers pings of hosts that are not dead.
type hostNet struct {
	mu      sync.Mutex
	dead    map[netip.Addr]bool
	absent  map[netip.Addr]bool
	pings   int
	lookups int
	peers   map[tailcfg.StableNodeID]netip.Addr
}

func (n *hostNet) ping(ctx context.Context, addr netip.Addr, _ tailcfg.PingType) (*ipnstate.PingResult, error) {
	n.mu.Lock()
	n.pings++
	dead, absent := n.dead[addr], n.absent[addr]
	n.mu.Unlock()
	if absent {
		return &ipnstate.PingResult{Err: "no matching peer"}, nil
	}
	if dead {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &ipnstate.PingResult{}, nil
}

func (n *hostNet) status(context.Context) (*ipnstate.Status, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookups++
	st := &ipnstate.Status{Peer: map[key.NodePublic]*ipnstate.PeerStatus{}}
	for id, addr := range n.peers {
		st.Peer[key.NewNode().Public()] = &ipnstate.PeerStatus{ID: id, TailscaleIPs: []netip.Addr{addr}}
	}
	return st, nil
}

func (n *hostNet) kill(addr netip.Addr, dead bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead[addr] = dead
}

// unknown has tailscaled not know the host of an address.
func (n *hostNet) unknown(addr netip.Addr, absent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.absent[addr] = absent
}

// TestWitness checks what a machine reports about the hosts that it watches.
func TestWitness(t *testing.T) {
	first, second := netip.MustParseAddr("100.64.0.1"), netip.MustParseAddr("100.64.0.2")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := &hostNet{dead: map[netip.Addr]bool{}, absent: map[netip.Addr]bool{}, peers: map[tailcfg.StableNodeID]netip.Addr{"n1": first, "n2": second}}
		wakes := 0
		r := &witnessRole{ping: n.ping, wake: func() { n.mu.Lock(); wakes++; n.mu.Unlock() }, peers: peerAddresses{status: n.status}, watches: map[string]*hostWatch{}}
		running := facts{tailnet: localapi.State{Running: true}, watched: []string{"hidden", "n1", "n2"}}
		reported := func() []v1alpha1.WatchedHost {
			s := &v1alpha1.MachineAgentStatus{}
			r.report(s)
			return s.Watches
		}
		check := func(reason string, d time.Duration, want ...v1alpha1.WatchedHost) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if diff := cmp.Diff(want, reported()); diff != "" {
				t.Errorf("%s\nreport(...): -want, +got:\n%s", reason, diff)
			}
		}
		hidden := v1alpha1.WatchedHost{NodeID: "hidden"}
		alive := func(id string) v1alpha1.WatchedHost {
			return v1alpha1.WatchedHost{NodeID: id, State: v1alpha1.WatchStateAlive}
		}
		lost := func(id string) v1alpha1.WatchedHost {
			return v1alpha1.WatchedHost{NodeID: id, State: v1alpha1.WatchStateLost}
		}

		r.step(ctx, time.Now(), running)
		check("A host that the machine sees answers, and one that it does not see says nothing.", 10*time.Second, hidden, alive("n1"), alive("n2"))
		n.mu.Lock()
		pings := n.pings
		n.mu.Unlock()
		<-time.After(time.Minute)
		n.mu.Lock()
		if got := n.pings - pings; got > 2*61 {
			t.Errorf("A host must not get more than a ping a second, got %d for two hosts in a minute", got)
		}
		if wakes != 2 {
			t.Errorf("Only changes must wake the loop, got %d", wakes)
		}
		if n.lookups > 6 {
			t.Errorf("All watches must share the requests for peers, got %d in a minute", n.lookups)
		}
		n.mu.Unlock()

		n.kill(first, true)
		check("A host that died is lost within five seconds.", 5*time.Second, hidden, lost("n1"), alive("n2"))
		n.kill(first, false)
		check("It is not alive at once when it answers.", 5*time.Second, hidden, v1alpha1.WatchedHost{NodeID: "n1", State: v1alpha1.WatchStateReturning}, alive("n2"))
		check("It is once it has answered for a while.", 15*time.Second, hidden, alive("n1"), alive("n2"))

		n.unknown(first, true)
		check("A host that tailscaled does not know any more is not lost.", 10*time.Second, hidden, v1alpha1.WatchedHost{NodeID: "n1"}, alive("n2"))
		n.unknown(first, false)
		check("It answers once tailscaled knows it again.", 40*time.Second, hidden, alive("n1"), alive("n2"))

		r.step(ctx, time.Now(), facts{tailnet: localapi.State{Running: true}, watched: []string{"n2"}})
		check("A host that is not to be watched is left out.", 0, alive("n2"))
		n.kill(second, true)
		r.step(ctx, time.Now(), facts{watched: []string{"n2"}})
		check("A machine that is not in its tailnet says nothing, because it would lose all hosts.", time.Minute)
		r.step(ctx, time.Now(), running)
		check("Afterwards, a host that has not answered yet is not lost.", time.Minute, hidden, alive("n1"), v1alpha1.WatchedHost{NodeID: "n2"})
		r.close()
	})
}

// TestPeerAddresses checks that a failed request says nothing about addresses that are known.
func TestPeerAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		addr, fails := netip.MustParseAddr("100.64.0.1"), true
		p := &peerAddresses{status: func(context.Context) (*ipnstate.Status, error) {
			if fails {
				return nil, errors.New("boom")
			}
			return &ipnstate.Status{Peer: map[key.NodePublic]*ipnstate.PeerStatus{key.NewNode().Public(): {ID: "n1", TailscaleIPs: []netip.Addr{addr}}}}, nil
		}}
		for _, tc := range []struct {
			reason string
			fails  bool
			wait   time.Duration
			want   netip.Addr
		}{
			{reason: "An address is not known while tailscaled does not answer.", fails: true},
			{reason: "The next request finds it.", wait: locateEvery, want: addr},
			{reason: "It is not requested again.", fails: true, wait: time.Hour, want: addr},
		} {
			fails = tc.fails
			<-time.After(tc.wait)
			if diff := cmp.Diff(tc.want, p.find(t.Context(), "n1"), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("%s\nfind(...): -want, +got:\n%s", tc.reason, diff)
			}
		}
	})
}

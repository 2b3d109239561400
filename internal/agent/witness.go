// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/fence"
)

const (
	// maxWatches limits the hosts that one machine watches.
	maxWatches = 256

	// locateEvery is how often the machine looks for the addresses of hosts that it does not see.
	locateEvery = 15 * time.Second
)

// A witnessRole watches hosts of services of which the provider has made this machine a witness. See package
// fence.
type witnessRole struct {
	plainRole

	// ping sends one ping, and wake has the loop run its step.
	ping func(ctx context.Context, addr netip.Addr, t tailcfg.PingType) (*ipnstate.PingResult, error)
	wake func()

	peers   peerAddresses
	watches map[string]*hostWatch // By node ID.
}

// A hostWatch is the watch of one host.
type hostWatch struct {
	stop context.CancelFunc

	mu      sync.Mutex
	addr    netip.Addr // Invalid while the machine does not see the host.
	tracker fence.Tracker
}

// step begins and ends watches. A machine that is not in its tailnet forgets what it has seen, because it
// would lose all hosts.
func (r *witnessRole) step(ctx context.Context, _ time.Time, f facts) time.Time {
	var wanted []string
	if f.tailnet.Running && !f.draining {
		wanted = f.watched[:min(len(f.watched), maxWatches)]
	}
	for id, w := range r.watches {
		if !slices.Contains(wanted, id) {
			w.stop()
			delete(r.watches, id)
		}
	}
	for _, id := range wanted {
		if r.watches[id] != nil {
			continue
		}
		pings, stop := context.WithCancel(ctx)
		w := &hostWatch{stop: stop}
		r.watches[id] = w
		go r.follow(pings, tailcfg.StableNodeID(id), w)
	}
	return time.Time{}
}

// report adds the watches to the status.
func (r *witnessRole) report(s *v1alpha1.MachineAgentStatus) {
	for _, id := range slices.Sorted(maps.Keys(r.watches)) {
		s.Watches = append(s.Watches, v1alpha1.WatchedHost{NodeID: id, State: r.watches[id].state()})
	}
}

// close ends all watches.
func (r *witnessRole) close() {
	for _, w := range r.watches {
		w.stop()
	}
}

// follow pings a host until ctx ends.
func (r *witnessRole) follow(ctx context.Context, id tailcfg.StableNodeID, w *hostWatch) {
	pause := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		addr := w.address()
		if !addr.IsValid() {
			addr = r.peers.find(ctx, id)
			w.locate(addr)
		}
		if !addr.IsValid() {
			pause = locateEvery
			continue
		}
		go r.send(ctx, addr, w)
		pause = w.pause()
	}
}

// send sends one ping. It asks magicsock of the host, which answers whatever the policy file lets the two
// exchange, if it lets them know each other (tailscale.com wgengine/magicsock, handlePingLocked).
func (r *witnessRole) send(ctx context.Context, addr netip.Addr, w *hostWatch) {
	start := time.Now()
	ping, cancel := context.WithTimeout(ctx, fence.Timeout)
	defer cancel()
	res, err := r.ping(ping, addr, tailcfg.PingDisco)
	if ctx.Err() != nil {
		return
	}
	var changed bool
	switch {
	case err == nil && res.Err == "":
		changed = w.record(start, time.Now(), true)
	case err != nil && ping.Err() != nil:
		changed = w.record(start, time.Now(), false)
	default:
		// tailscaled does not know the host any more, or does not answer itself. Neither says that the host
		// is dead.
		changed = w.forget()
	}
	if changed {
		r.wake()
	}
}

// address returns the address of the host, or an invalid one.
func (w *hostWatch) address() netip.Addr {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addr
}

// locate sets the address of the host.
func (w *hostWatch) locate(addr netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addr = addr
}

// forget forgets the host, as if it had never answered, and reports whether this changes the state.
func (w *hostWatch) forget() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	previous := stateOf(&w.tracker)
	w.addr, w.tracker = netip.Addr{}, fence.Tracker{}
	return previous != ""
}

// record records the result of a ping, and reports whether it changes the state.
func (w *hostWatch) record(start, end time.Time, answered bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	previous := stateOf(&w.tracker)
	if answered {
		w.tracker.Answered(start)
	} else {
		w.tracker.Failed(start, end)
	}
	return stateOf(&w.tracker) != previous
}

func (w *hostWatch) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tracker.Pause()
}

func (w *hostWatch) state() v1alpha1.WatchState {
	w.mu.Lock()
	defer w.mu.Unlock()
	return stateOf(&w.tracker)
}

// stateOf returns the state of a watch to report.
func stateOf(t *fence.Tracker) v1alpha1.WatchState {
	switch {
	case t.Lost():
		return v1alpha1.WatchStateLost
	case t.Returning():
		return v1alpha1.WatchStateReturning
	case t.Seen():
		return v1alpha1.WatchStateAlive
	}
	return ""
}

// peerAddresses finds addresses of peers. All watches share one request, because the answer lists all peers.
type peerAddresses struct {
	status func(ctx context.Context) (*ipnstate.Status, error)

	mu    sync.Mutex
	at    time.Time
	addrs map[tailcfg.StableNodeID]netip.Addr
}

// find returns the address of a peer, or an invalid one if the machine does not see it.
func (p *peerAddresses) find(ctx context.Context, id tailcfg.StableNodeID) netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if addr := p.addrs[id]; addr.IsValid() || time.Since(p.at) < locateEvery/2 {
		return addr
	}
	ctx, cancel := context.WithTimeout(ctx, pathsTimeout)
	defer cancel()
	st, err := p.status(ctx)
	p.at = time.Now()
	if err != nil {
		return netip.Addr{}
	}
	p.addrs = make(map[tailcfg.StableNodeID]netip.Addr, len(st.Peer))
	for _, peer := range st.Peer {
		if len(peer.TailscaleIPs) > 0 {
			p.addrs[peer.ID] = peer.TailscaleIPs[0]
		}
	}
	return p.addrs[id]
}

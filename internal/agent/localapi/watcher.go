// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package localapi is the agent's client of tailscaled's LocalAPI. It watches whether
// tailscaled is in its tailnet, which services control has accepted the machine for, and which
// peers exist. It also requests that tailscaled reloads its config, logs out, and dials. It
// makes no decisions.
package localapi

import (
	"context"
	"net/netip"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/client/tailscale/apitype"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Pauses between attempts to reach tailscaled. They are short: tailscaled listens on a local
// socket, and is back soon after it stopped.
const (
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// requestTimeout bounds one request to tailscaled.
const requestTimeout = 10 * time.Second

// A Client has the methods of tailscaled's LocalAPI that a Watcher needs.
type Client interface {
	WatchIPNBus(ctx context.Context, mask ipn.NotifyWatchOpt) (*local.IPNBusWatcher, error)
	ReloadConfig(ctx context.Context) (bool, error)
	Logout(ctx context.Context) error
	WhoIs(ctx context.Context, addr string) (*apitype.WhoIsResponse, error)
	DNSConfig(ctx context.Context) (*tailcfg.DNSConfig, error)
	StatusWithoutPeers(ctx context.Context) (*ipnstate.Status, error)
	GetPrefs(ctx context.Context) (*ipn.Prefs, error)
	Ping(ctx context.Context, addr netip.Addr, t tailcfg.PingType) (*ipnstate.PingResult, error)
	CertPair(ctx context.Context, domain string) (cert, key []byte, err error)
	CertPairWithValidity(ctx context.Context, domain string, minValidity time.Duration) (cert, key []byte, err error)
	Status(ctx context.Context) (*ipnstate.Status, error)
}

// A Watcher watches one tailscaled.
type Watcher struct {
	client  Client
	log     logging.Logger
	changed func(State)
	mask    ipn.NotifyWatchOpt

	// peers is nil unless WithPeers was used.
	peers *Peers

	reload chan struct{}

	// reloaded is called when tailscaled has reloaded its config.
	reloaded func(request time.Time)

	// pollEvery is the pause between two requests of the status.
	pollEvery time.Duration

	denied bool
	state  State
}

// A WatcherOption configures a Watcher.
type WatcherOption func(*Watcher)

// WithPeers makes the Watcher keep p up to date.
func WithPeers(p *Peers) WatcherOption {
	return func(w *Watcher) { w.peers, w.mask = p, peersMask }
}

// WithReloaded makes the Watcher call fn each time that tailscaled has reloaded its config on
// request, with the time of the request.
func WithReloaded(fn func(request time.Time)) WatcherOption {
	return func(w *Watcher) { w.reloaded = fn }
}

// NewWatcher returns a Watcher of the tailscaled behind c. It calls changed, from one
// goroutine, with each state that differs from the previous one.
func NewWatcher(c Client, log logging.Logger, changed func(State), o ...WatcherOption) *Watcher {
	w := &Watcher{client: c, log: log, changed: changed, mask: busMask, reload: make(chan struct{}, 1), reloaded: func(time.Time) {}, pollEvery: pollEvery}
	for _, fn := range o {
		fn(w)
	}
	return w
}

// NewClient returns a client for the tailscaled that listens on socket.
func NewClient(socket string) Client {
	return certClient{Client: &local.Client{Socket: socket, UseSocketOnly: true}, socket: socket}
}

// Reload requests that tailscaled reloads its config as soon as it runs. Containerboot requests
// the same when it sees the file change, but it watches the file only once tailscaled has
// logged in, and misses earlier changes (cmd/containerboot/tailscaled.go,
// watchTailscaledConfigChanges).
func (w *Watcher) Reload() {
	select {
	case w.reload <- struct{}{}:
	default:
	}
}

// Logout logs tailscaled out of its tailnet. An error is only logged: the caller sees in the
// state whether the logout succeeded.
func (w *Watcher) Logout(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := w.client.Logout(ctx); err != nil {
		w.log.Info("Cannot log the node out", "error", err)
	}
}

// Run watches tailscaled until ctx is done.
func (w *Watcher) Run(ctx context.Context) {
	pause, refused := minPause, 0
	for ctx.Err() == nil {
		bus, first, err := w.open(ctx)
		switch {
		case err == nil:
			pause, refused = minPause, 0
			w.log.Debug("Lost tailscaled", "error", w.follow(ctx, bus, first))
		case w.answers(ctx):
			if refused++; refused < maxRefused {
				break
			}
			pause, refused = minPause, 0
			w.log.Info("Cannot read tailscaled's notifications, asking for its status instead", "every", w.pollEvery.String(), "error", err)
			w.log.Debug("Lost tailscaled", "error", w.poll(ctx))
		default:
			refused = 0
			// Only now tailscaled is known to be gone: a stream can also end while tailscaled runs.
			w.publish(State{Session: w.state.Session, Peers: w.state.Peers})
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

// follow reads the bus until it ends. The first notification has been read already.
func (w *Watcher) follow(ctx context.Context, bus *local.IPNBusWatcher, first ipn.Notify) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-ctx.Done()
		// The error reports the end of the stream, which Next also reports.
		_ = bus.Close()
	}()
	running, stop := w.startReloading(ctx)
	defer stop()

	st := State{Session: w.state.Session + 1, Peers: w.state.Peers}
	table := newRouteTable()
	for n := first; ; {
		changed, err := w.apply(ctx, &st, table, n)
		if changed {
			w.publish(st)
			latest(running, st.Running)
		}
		if err != nil && first.InitialStatus != nil {
			// The names of services may be old ones, and no notification may follow for a long time,
			// since control sends what changes only. The status of a new stream has them.
			return err
		}
		if n, err = bus.Next(); err != nil {
			return errors.Wrap(err, "cannot read from tailscaled's bus")
		}
	}
}

// apply applies a notification to st, to the routes and to the peers, and reports whether it
// contained anything of interest. It is an error if the DNS config cannot be read.
func (w *Watcher) apply(ctx context.Context, st *State, table *routeTable, n ipn.Notify) (bool, error) {
	var dns *tailcfg.DNSConfig
	var err error
	if n.SelfChange != nil && netMap(n) == nil {
		dns, err = w.dnsConfig(ctx)
	}
	changed := st.update(n, dns)
	if table.update(n) {
		st.Routes = table.routes()
		changed = true
	}
	if w.updatePeers(n, dns) {
		st.Peers++
		changed = true
	}
	return changed, err
}

// dnsConfig returns the current DNS config, about which the bus sends no notifications.
func (w *Watcher) dnsConfig(ctx context.Context) (*tailcfg.DNSConfig, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	dns, err := w.client.DNSConfig(ctx)
	return dns, errors.Wrap(err, "cannot get the DNS config from tailscaled")
}

// updatePeers applies a notification to the peers, if the Watcher has any, and reports whether
// they have changed.
func (w *Watcher) updatePeers(n ipn.Notify, dns *tailcfg.DNSConfig) bool {
	if w.peers == nil {
		return false
	}
	changed := w.peers.update(n)
	switch {
	case n.InitialStatus != nil:
		changed = w.peers.setRecords(n.InitialStatus.ExtraRecords) || changed
	case netMap(n) != nil:
		changed = w.peers.setRecords(netMap(n).DNS.ExtraRecords) || changed
	case dns != nil:
		changed = w.peers.setRecords(dns.ExtraRecords) || changed
	}
	return changed
}

// publish publishes st if it differs from the known state.
func (w *Watcher) publish(st State) {
	if st.equal(w.state) {
		return
	}
	w.state = st
	w.changed(st)
}

// startReloading reloads tailscaled's config in the background: once tailscaled runs, which the
// returned channel receives, and then on each request. stop waits for the end.
func (w *Watcher) startReloading(ctx context.Context) (running chan bool, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	running = make(chan bool, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.reloadWhileRunning(ctx, running)
	}()
	return running, func() {
		cancel()
		<-done
	}
}

// reloadWhileRunning reloads tailscaled's config once it runs, and then on each request. The
// channel running carries the latest state.
func (w *Watcher) reloadWhileRunning(ctx context.Context, running <-chan bool) {
	var (
		up    bool
		dirty = true
		retry <-chan time.Time
	)
	for {
		select {
		case <-ctx.Done():
			return
		case up = <-running:
		case <-w.reload:
			dirty = true
		case <-retry:
		}
		retry = nil
		if !up || !dirty {
			continue
		}
		if err := w.reloadOnce(ctx); err != nil {
			retry = time.After(maxPause)
			continue
		}
		dirty = false
	}
}

func (w *Watcher) reloadOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	request := time.Now()
	_, err := w.client.ReloadConfig(ctx)
	switch {
	case err == nil:
		w.denied = false
		w.reloaded(request)
		return nil
	case local.IsAccessDeniedError(err):
		// Another request would not help. Containerboot still watches the file.
		if !w.denied {
			w.log.Info("Cannot reload tailscaled's config: the agent must run as the same user as tailscaled", "error", err)
		}
		w.denied = true
		return nil
	default:
		w.log.Debug("Cannot reload tailscaled's config", "error", err)
		return err
	}
}

// latest sends v on a channel with a buffer of one, and replaces a value that is still there.
func latest(c chan bool, v bool) {
	select {
	case <-c:
	default:
	}
	c <- v
}

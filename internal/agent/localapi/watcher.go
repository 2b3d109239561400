// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package localapi is the agent's client of tailscaled's LocalAPI. It watches whether
// tailscaled is in its tailnet, which services control has accepted the machine for, and which
// peers exist. It also requests that tailscaled reloads its config, logs out, and dials. It
// makes no decisions.
package localapi

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/client/tailscale/apitype"
	"tailscale.com/health"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// Pauses between attempts to reach tailscaled. They are short: tailscaled listens on a local
// socket, and is back soon after it stopped.
const (
	minPause = 100 * time.Millisecond
	maxPause = 2 * time.Second
)

// reloadTimeout bounds one request to tailscaled.
const reloadTimeout = 10 * time.Second

// busMask requests one whole status at first, and then changes of the node itself and of peers,
// which may be primary for services. Without NotifyPeerPatches tailscaled would send a whole node
// for each small change. NotifyInitialState is not needed: the status contains the state.
const busMask = ipn.NotifyInitialStatus | ipn.NotifyNoNetMap | ipn.NotifyPeerChanges | ipn.NotifyPeerPatches | ipn.NotifyInitialHealthState

// peersMask also requests whether the node uses the routes of subnet routers.
const peersMask = busMask | ipn.NotifyInitialPrefs

// A State is the known state of tailscaled.
type State struct {
	// Session counts connections to tailscaled. It increases when tailscaled was restarted.
	Session int

	// Running reports whether tailscaled is logged in and connected.
	Running bool

	// LoginError is the last error of tailscaled's login. Empty if the last attempt succeeded.
	LoginError string

	// Accepted are the services that control accepted this node for. The map does not change once
	// published.
	Accepted map[string]bool

	// HTTPS reports whether the tailnet provides certificates. Only valid if HTTPSKnown is true.
	HTTPS bool

	// HTTPSKnown reports whether tailscaled has reported HTTPS in this session.
	HTTPSKnown bool

	// Addresses are the machine's addresses in the tailnet. The slice does not change once
	// published.
	Addresses []netip.Addr

	// Routes are the addresses of services for which nodes are primary.
	Routes Routes

	// Tags are the machine's tags. The slice does not change once published.
	Tags []string

	// Visible are the addresses of the services that the policy lets this node see, by their name.
	// It is nil if control does not report them. The map does not change once published.
	Visible map[string][]netip.Addr

	// Peers counts the changes of peers. It is zero until peers are known, and stays zero in a
	// Watcher without Peers.
	Peers int
}

// A Client has the methods of tailscaled's LocalAPI that a Watcher needs.
type Client interface {
	WatchIPNBus(ctx context.Context, mask ipn.NotifyWatchOpt) (*local.IPNBusWatcher, error)
	ReloadConfig(ctx context.Context) (bool, error)
	Logout(ctx context.Context) error
	WhoIs(ctx context.Context, addr string) (*apitype.WhoIsResponse, error)
	DNSConfig(ctx context.Context) (*tailcfg.DNSConfig, error)
	CertDomains(ctx context.Context) ([]string, error)
	Ping(ctx context.Context, addr netip.Addr, t tailcfg.PingType) (*ipnstate.PingResult, error)
	CertPair(ctx context.Context, domain string) (cert, key []byte, err error)
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
	reloaded func()

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
// request.
func WithReloaded(fn func()) WatcherOption {
	return func(w *Watcher) { w.reloaded = fn }
}

// NewWatcher returns a Watcher of the tailscaled behind c. It calls changed, from one
// goroutine, with each state that differs from the previous one.
func NewWatcher(c Client, log logging.Logger, changed func(State), o ...WatcherOption) *Watcher {
	w := &Watcher{client: c, log: log, changed: changed, mask: busMask, reload: make(chan struct{}, 1), reloaded: func() {}}
	for _, fn := range o {
		fn(w)
	}
	return w
}

// NewClient returns a client for the tailscaled that listens on socket.
func NewClient(socket string) *local.Client {
	return &local.Client{Socket: socket, UseSocketOnly: true}
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
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	if err := w.client.Logout(ctx); err != nil {
		w.log.Info("Cannot log the node out", "error", err)
	}
}

// Run watches tailscaled until ctx is done.
func (w *Watcher) Run(ctx context.Context) {
	pause := minPause
	for ctx.Err() == nil {
		bus, err := w.client.WatchIPNBus(ctx, w.mask)
		if err == nil {
			pause = minPause
			w.log.Debug("Lost tailscaled", "error", w.follow(ctx, bus))
		} else {
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

// follow reads the bus until it ends.
func (w *Watcher) follow(ctx context.Context, bus *local.IPNBusWatcher) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		<-ctx.Done()
		// The error reports the end of the stream, which Next also reports.
		_ = bus.Close()
	}()

	running := make(chan bool, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.reloadWhileRunning(ctx, running)
	}()
	defer func() {
		cancel()
		<-done
	}()

	st := State{Session: w.state.Session + 1, Peers: w.state.Peers}
	table := newRouteTable()
	for {
		n, err := bus.Next()
		if err != nil {
			return errors.Wrap(err, "cannot read from tailscaled's bus")
		}
		changed := st.update(n)
		if table.update(n) {
			st.Routes = table.routes()
			changed = true
		}
		peersChanged, err := w.updatePeers(ctx, n)
		if peersChanged {
			st.Peers++
			changed = true
		}
		if changed {
			w.publish(st)
			latest(running, st.Running)
		}
		if err != nil {
			return err
		}
	}
}

// updatePeers applies a notification to the peers, if the Watcher has any, and reports whether
// they have changed. After an error the names of services may be old ones, and no notification may
// follow for a long time, since control sends what changes only. The status of a new stream has
// them.
func (w *Watcher) updatePeers(ctx context.Context, n ipn.Notify) (bool, error) {
	if w.peers == nil {
		return false, nil
	}
	changed := w.peers.update(n)
	switch {
	case n.InitialStatus != nil:
		changed = w.peers.setRecords(n.InitialStatus.ExtraRecords) || changed
	case n.SelfChange != nil:
		// The bus sends no notifications about DNS.
		ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
		defer cancel()
		dns, err := w.client.DNSConfig(ctx)
		if err != nil {
			return changed, errors.Wrap(err, "cannot get names of services from tailscaled")
		}
		changed = w.peers.setRecords(dns.ExtraRecords) || changed
	}
	return changed, nil
}

// publish publishes st if it differs from the known state.
func (w *Watcher) publish(st State) {
	if st.Session == w.state.Session && st.Running == w.state.Running && st.Peers == w.state.Peers && maps.Equal(st.Accepted, w.state.Accepted) && st.Routes.equal(w.state.Routes) &&
		slices.Equal(st.Addresses, w.state.Addresses) && slices.Equal(st.Tags, w.state.Tags) && maps.EqualFunc(st.Visible, w.state.Visible, slices.Equal) &&
		st.HTTPS == w.state.HTTPS && st.HTTPSKnown == w.state.HTTPSKnown && st.LoginError == w.state.LoginError {
		return
	}
	w.state = st
	w.changed(st)
}

// update applies a notification, and reports whether it contained anything of interest.
func (st *State) update(n ipn.Notify) bool {
	changed := false
	if s := n.InitialStatus; s != nil {
		changed = true
		st.Running = s.BackendState == ipn.Running.String()
		cm := capMap(s)
		st.Accepted, st.Visible = accepted(cm), visible(cm)
		st.Tags = nil
		if s.Self != nil && s.Self.Tags != nil {
			st.Tags = s.Self.Tags.AsSlice()
		}
		st.HTTPS = len(s.CertDomains) > 0 || cm.Contains(tailcfg.CapabilityHTTPS)
		st.HTTPSKnown = st.Running
		st.Addresses = s.TailscaleIPs
	}
	if n.State != nil {
		changed = true
		st.Running = *n.State == ipn.Running
	}
	if n.Health != nil {
		changed = true
		st.LoginError = loginError(n.Health)
	}
	if n.SelfChange != nil {
		changed = true
		st.Accepted, st.Visible = accepted(n.SelfChange.CapMap), visible(n.SelfChange.CapMap)
		st.Tags = n.SelfChange.Tags
		st.Addresses = nil
		for _, p := range n.SelfChange.Addresses {
			st.Addresses = append(st.Addresses, p.Addr())
		}
		// The bus does not send the names of certificates, but the node has this capability if
		// there are any.
		st.HTTPS, st.HTTPSKnown = n.SelfChange.CapMap.Contains(tailcfg.CapabilityHTTPS), true
	}
	return changed
}

// loginError returns the last login error in tailscaled's health, or "". Not every such warning has an
// error: one without means that tailscaled has cancelled an attempt.
func loginError(s *health.State) string {
	return s.Warnings[health.LoginStateWarnable.Code].Args[health.ArgError]
}

func capMap(s *ipnstate.Status) tailcfg.NodeCapMap {
	if s.Self == nil {
		return nil
	}
	return s.Self.CapMap
}

// accepted returns the services in the node's own service-host capability.
func accepted(cm tailcfg.NodeCapMap) map[string]bool {
	out := make(map[string]bool)

	// Control encodes the value. A value that cannot be read accepts no service.
	mappings, err := tailcfg.UnmarshalNodeCapJSON[tailcfg.ServiceIPMappings](cm, tailcfg.NodeAttrServiceHost)
	if err != nil {
		return out
	}
	for _, m := range mappings {
		for name := range m {
			out[name.String()] = true
		}
	}
	return out
}

// visible returns the addresses of the services in the node's own capabilities, one for each
// service that the policy lets the node reach (tailcfg.NodeAttrPrefixServices). Without any, it
// returns nil: control may not send them, so nothing follows for a service that is not among them.
func visible(cm tailcfg.NodeCapMap) map[string][]netip.Addr {
	var out map[string][]netip.Addr
	for c := range cm {
		if !strings.HasPrefix(string(c), string(tailcfg.NodeAttrPrefixServices)) {
			continue
		}
		details, err := tailcfg.UnmarshalNodeCapJSON[tailcfg.ServiceDetails](cm, c)
		if err != nil {
			// Which service this is cannot be known: it may be any.
			return nil
		}
		for _, d := range details {
			if out == nil {
				out = make(map[string][]netip.Addr)
			}
			out[d.Name.String()] = d.Addrs
		}
	}
	return out
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
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()

	_, err := w.client.ReloadConfig(ctx)
	switch {
	case err == nil:
		w.denied = false
		w.reloaded()
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

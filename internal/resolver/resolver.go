// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package resolver keeps the addresses of hosts up to date, for users that need addresses instead
// of names: the kernel, and Envoys, whose clusters can then mix names and addresses. A caller that
// dials a name should instead look it up each time.
package resolver

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/fair"
)

const (
	// timeout bounds a lookup, with all attempts of the system's resolver.
	timeout = 10 * time.Second

	// defaultLookups is the default of Options.Lookups.
	defaultLookups = 32

	// spread is the maximum part of a pause by which lookups are delayed, so that they do not all
	// happen at once.
	spread = 0.1
)

// A Lookup returns the addresses of a host, as net.Resolver.LookupNetIP does.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// Options are the options of a Resolver.
type Options struct {
	// Lookup looks up a host. Nil means the system's resolver.
	Lookup Lookup

	// Interval is the time between two lookups of a host: DNS does not announce changes, and the
	// system's resolver returns no lifetimes. Zero means 30 seconds.
	Interval time.Duration

	// Retry is the pause after a lookup that failed or returned no address. Zero means 5 seconds.
	Retry time.Duration

	// Lookups is the number of concurrent lookups, which the owners of hosts share (fair.Slots).
	// Zero means 32.
	Lookups int

	// Log may be nil.
	Log logging.Logger
}

// A Resolver looks up a changing set of hosts. Its methods are safe for concurrent use.
type Resolver struct {
	opts    Options
	changed func(host string)

	// slots limits the concurrent lookups.
	slots *fair.Slots

	mu    sync.Mutex
	hosts map[string]*host
}

// A host holds the state of a host.
type host struct {
	name   string
	cancel context.CancelFunc

	// owners of the host, sorted, of whose shares a lookup needs one. wait ends the wait for a slot of
	// the former owners; nil unless there is one.
	owners []string
	wait   context.CancelFunc

	// addrs are the host's addresses, sorted. resolved reports whether a lookup has succeeded, or has
	// returned that the host does not exist.
	addrs    []netip.Addr
	resolved bool

	// empty reports that the last lookup returned no address.
	empty bool

	// failing reports that the last lookup failed. The first failure in a row is logged.
	failing bool
}

// New returns a Resolver without hosts. It calls changed from separate goroutines after the first
// lookup of a host, also if it fails, and after the addresses of a host have changed, but not when
// Set removes a host.
func New(o Options, changed func(host string)) *Resolver {
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupNetIP
	}
	if o.Interval == 0 {
		o.Interval = 30 * time.Second
	}
	if o.Retry == 0 {
		o.Retry = 5 * time.Second
	}
	if o.Lookups == 0 {
		o.Lookups = defaultLookups
	}
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	return &Resolver{opts: o, changed: changed, slots: fair.NewSlots(o.Lookups), hosts: make(map[string]*host)}
}

// Set replaces the hosts to look up, at once and then repeatedly until ctx is done. They have one
// owner.
func (r *Resolver) Set(ctx context.Context, hosts []string) {
	owned := make(map[string][]string, len(hosts))
	for _, name := range hosts {
		owned[name] = []string{""}
	}
	r.SetOwned(ctx, owned)
}

// SetOwned replaces the hosts to look up, as Set does, and their owners, such as the namespaces that
// name a host. Lookups that hang hold up those of their owners alone.
func (r *Resolver) SetOwned(ctx context.Context, hosts map[string][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.hosts, func(name string, h *host) bool {
		if _, ok := hosts[name]; ok {
			return false
		}
		h.cancel()
		return true
	})
	for name, owners := range hosts {
		owners = slices.Sorted(slices.Values(owners))
		if h := r.hosts[name]; h != nil {
			h.own(owners)
			continue
		}
		hctx, cancel := context.WithCancel(ctx)
		h := &host{name: name, cancel: cancel, owners: owners}
		r.hosts[name] = h
		go r.follow(hctx, h)
	}
}

// own replaces the owners. The resolver's lock must be held.
func (h *host) own(owners []string) {
	if slices.Equal(h.owners, owners) {
		return
	}
	h.owners = owners
	if h.wait != nil {
		h.wait()
	}
}

// Addresses returns the sorted addresses of the hosts that were looked up. A host keeps its last
// addresses while its lookup fails, and until two lookups in a row have returned that it does not
// exist, because a server that has just started may not know its names yet. It has no addresses
// after that.
func (r *Resolver) Addresses() map[string][]netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string][]netip.Addr, len(r.hosts))
	for name, h := range r.hosts {
		if h.resolved {
			out[name] = h.addrs
		}
	}
	return out
}

// Get returns the addresses of one host, as Addresses does. It returns false if they are not known.
func (r *Resolver) Get(host string) ([]netip.Addr, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := r.hosts[host]
	if !ok || !h.resolved {
		return nil, false
	}
	return h.addrs, true
}

// follow looks up a host until ctx ends.
func (r *Resolver) follow(ctx context.Context, h *host) {
	for first := true; ; first = false {
		addrs, err := r.resolve(ctx, h)
		if ctx.Err() != nil {
			return
		}
		changed, found := r.update(h, addrs, err)
		if changed || first {
			r.changed(h.name)
		}
		pause := r.opts.Retry
		if found {
			pause = r.opts.Interval
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait.Jitter(pause, spread)):
		}
	}
}

// slot waits for a slot of one of the host's owners, and returns a function that releases it.
func (r *Resolver) slot(ctx context.Context, h *host) (func(), error) {
	for {
		r.mu.Lock()
		wctx, cancel := context.WithCancel(ctx)
		owners := h.owners
		h.wait = cancel
		r.mu.Unlock()

		release, err := r.slots.Acquire(wctx, owners...)

		r.mu.Lock()
		h.wait = nil
		r.mu.Unlock()
		cancel()
		if err == nil || ctx.Err() != nil {
			return release, err
		}
		// The host has other owners.
	}
}

// resolve looks up a host once, as soon as a slot is free. It returns no address for a host that
// does not exist.
func (r *Resolver) resolve(ctx context.Context, h *host) ([]netip.Addr, error) {
	release, err := r.slot(ctx, h)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addrs, err := r.opts.Lookup(ctx, "ip", h.name)
	var dns *net.DNSError
	if err != nil && (!errors.As(err, &dns) || !dns.IsNotFound) {
		return nil, err
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap().WithZone("")
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs), nil
}

// errNone is logged for a host that does not exist.
var errNone = errors.New("the host has no addresses")

// update records the result of a lookup. It reports whether the addresses have changed, and
// whether the lookup has returned any.
func (r *Resolver) update(h *host, addrs []netip.Addr, err error) (changed, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	empty := err == nil && len(addrs) == 0
	first := empty && !h.empty && len(h.addrs) > 0
	h.empty = empty
	switch {
	case first:
		return false, false
	case empty:
		r.fails(h, errNone)
	case err != nil:
		r.fails(h, err)
		return false, false
	case h.failing:
		h.failing = false
		r.opts.Log.Info("Found the addresses of a host again", "host", h.name)
	}
	changed = !h.resolved || !slices.Equal(h.addrs, addrs)
	h.addrs, h.resolved = addrs, true
	return changed, !empty
}

// fails logs the first failure in a row.
func (r *Resolver) fails(h *host, err error) {
	if !h.failing {
		r.opts.Log.Info("Cannot find the addresses of a host, will try again", "host", h.name, "in-use", h.addrs, "error", err)
	}
	h.failing = true
}

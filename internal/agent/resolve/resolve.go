// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package resolve keeps the addresses of hosts up to date. It is for users that only know
// addresses, such as the kernel. A caller that dials a name should instead look it up each
// time.
package resolve

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// interval is the time between two lookups of a host. DNS does not announce changes, and a
	// Service keeps its address.
	interval = 15 * time.Second

	// retry is the time between two lookups of a host that has no address yet.
	retry = 2 * time.Second

	// timeout bounds a lookup.
	timeout = 5 * time.Second
)

// A Lookup returns the addresses of a host.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// A Resolver looks up a changing set of hosts. Its methods are safe for concurrent use.
type Resolver struct {
	lookup  Lookup
	changed func()

	mu    sync.Mutex
	hosts map[string]*host
}

type host struct {
	cancel context.CancelFunc
	addrs  []netip.Addr
	known  bool
}

// New returns a Resolver without hosts. It calls changed from separate goroutines after the
// addresses of a host have changed.
func New(l Lookup, changed func()) *Resolver {
	return &Resolver{lookup: l, changed: changed, hosts: make(map[string]*host)}
}

// Set replaces the hosts to look up, at once and then repeatedly until ctx is done.
func (r *Resolver) Set(ctx context.Context, hosts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.hosts, func(name string, h *host) bool {
		if slices.Contains(hosts, name) {
			return false
		}
		h.cancel()
		return true
	})
	for _, name := range hosts {
		if r.hosts[name] != nil {
			continue
		}
		hctx, cancel := context.WithCancel(ctx)
		h := &host{cancel: cancel}
		r.hosts[name] = h
		go r.follow(hctx, name, h)
	}
}

// Addresses returns the sorted addresses of the hosts that were looked up. While the lookup of
// a host fails, the host keeps its last addresses; a host that does not exist has none.
func (r *Resolver) Addresses() map[string][]netip.Addr {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string][]netip.Addr, len(r.hosts))
	for name, h := range r.hosts {
		if h.known {
			out[name] = h.addrs
		}
	}
	return out
}

func (r *Resolver) follow(ctx context.Context, name string, h *host) {
	for {
		addrs, ok := r.resolve(ctx, name)
		if ctx.Err() != nil {
			return
		}
		pause := interval
		if len(addrs) == 0 {
			pause = retry
		}
		if ok && r.set(h, addrs) {
			r.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (r *Resolver) resolve(ctx context.Context, name string) ([]netip.Addr, bool) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addrs, err := r.lookup(ctx, "ip", name)
	var dns *net.DNSError
	if err != nil && (!errors.As(err, &dns) || !dns.IsNotFound) {
		return nil, false
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs), true
}

// set records the addresses of a host, and reports whether they changed.
func (r *Resolver) set(h *host, addrs []netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := h.known && slices.Equal(h.addrs, addrs)
	h.addrs, h.known = addrs, true
	return !same
}

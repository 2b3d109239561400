// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package dns gives the index the addresses of backends that are DNS names. Envoy gets only
// addresses, so that a name can stand beside addresses in one cluster, and one lookup serves all
// Envoys.
package dns

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver"
)

// Hosts are the names to look up. An index.Store implements it.
type Hosts interface {
	// Hosts are the names, and the namespaces that need each.
	Hosts() map[string][]string

	// HostsChanged returns a channel that receives a value when the names may have changed.
	HostsChanged() <-chan struct{}

	// SetHost sets the addresses of a name. An empty list means that it has none, or that they
	// cannot be found.
	SetHost(host string, addresses []string)

	// ForgetHost removes a name.
	ForgetHost(host string)
}

// A syncer sets the addresses of names.
type syncer struct {
	hosts    Hosts
	resolver *resolver.Resolver

	// local are the families of the cluster's pods, Envoys among them.
	local address.Families

	// mu orders the calls of SetHost: a name that is removed must not get its addresses again.
	mu  sync.Mutex
	set map[string][]string
}

// Run looks up the names until ctx ends, and removes the addresses of names that are not in use any
// more. The other addresses stay when it ends: Envoys still use them. local are the families of the
// pod's addresses; Envoys have the same. None means unknown.
func Run(ctx context.Context, h Hosts, local address.Families, o resolver.Options) error {
	s := &syncer{hosts: h, local: local, set: map[string][]string{}}
	s.resolver = resolver.New(o, s.sync)
	for {
		hosts := h.Hosts()
		s.resolver.SetOwned(ctx, hosts)
		s.keep(hosts)
		select {
		case <-ctx.Done():
			return nil
		case <-h.HostsChanged():
		}
	}
}

// sync sets the addresses of a name if they have changed, and after the first lookup.
func (s *syncer) sync(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _ := s.resolver.Get(host)
	existing, ok := s.set[host]
	if addresses := preferred(found, s.local); !ok || !slices.Equal(existing, addresses) {
		s.set[host] = addresses
		s.hosts.SetHost(host, addresses)
	}
}

// keep removes the addresses of all names but hosts.
func (s *syncer) keep(hosts map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.set, func(host string, _ []string) bool {
		if _, ok := hosts[host]; ok {
			return false
		}
		s.hosts.ForgetHost(host)
		return true
	})
}

// preferred returns the IPv4 addresses, or the IPv6 addresses if there are no others, in the same
// order. Envoy Gateway configures Envoy in the same way for the names of Backends: a cluster without
// connectivity in one family must not lose a part of its requests. In a cluster without IPv4, it
// returns the IPv6 addresses if there are any.
func preferred(addrs []netip.Addr, local address.Families) []string {
	var v4, v6 []string
	for _, a := range addrs {
		if a.Is4() {
			v4 = append(v4, a.String())
			continue
		}
		v6 = append(v6, a.String())
	}
	noIPv4 := local.IPv6 && !local.IPv4
	if len(v4) == 0 || noIPv4 && len(v6) > 0 {
		return v6
	}
	return v4
}

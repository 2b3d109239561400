// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

const (
	// defaultInterval is the time between two look-ups of a name. The system's resolver
	// returns no lifetimes; kubelets and Envoy Gateway's own names are no fresher.
	defaultInterval = 30 * time.Second

	// defaultRetry is the pause after a look-up that failed, and after the first that finds
	// a name gone.
	defaultRetry = 5 * time.Second

	// timeout of a look-up, with all attempts of the resolver.
	timeout = 10 * time.Second

	// parallel is the limit of concurrent look-ups.
	parallel = 16

	// spread is the part of an interval by which look-ups are delayed, at most, so that they
	// do not stay together.
	spread = 0.1
)

// Hosts are the names to look up. An index.Store implements it.
type Hosts interface {
	// Hosts are the names, each once.
	Hosts() []string

	// HostsChanged returns a channel that receives a value when the names may have changed.
	HostsChanged() <-chan struct{}

	// SetHost sets the addresses of a name. An empty list means that it has none.
	SetHost(host string, addresses []string)
}

// A Lookup finds the addresses of a name, of both families. It is net.Resolver.LookupNetIP
// for the network ip.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// Options of a Resolver.
type Options struct {
	// Lookup is the system's resolver by default.
	Lookup Lookup

	// Interval between two look-ups of a name. Zero means 30 seconds.
	Interval time.Duration

	// Retry is the pause after a look-up that failed. Zero means 5 seconds.
	Retry time.Duration

	// Log may be nil.
	Log logging.Logger
}

// A Resolver keeps the addresses of names up to date.
type Resolver struct {
	hosts Hosts
	opts  Options

	// slots limit the concurrent look-ups.
	slots chan struct{}
}

// New returns a Resolver. It does nothing until Run runs.
func New(h Hosts, o Options) *Resolver {
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	return &Resolver{hosts: h, opts: o, slots: make(chan struct{}, parallel)}
}

// A follower is the goroutine of a name.
type follower struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// Run looks up the names until ctx ends. Each name has a goroutine, which mostly waits. Run
// forgets names that are not in use any more.
func (r *Resolver) Run(ctx context.Context) error {
	running := map[string]follower{}
	defer func() {
		for _, f := range running {
			<-f.ended
		}
	}()
	// The context is cancelled before the wait, so that every goroutine ends.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		wanted := map[string]bool{}
		for _, h := range r.hosts.Hosts() {
			wanted[h] = true
			if _, ok := running[h]; !ok {
				running[h] = r.start(ctx, h)
			}
		}
		for h, f := range running {
			if !wanted[h] {
				f.cancel()
				<-f.ended
				delete(running, h)
				r.hosts.SetHost(h, nil)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.hosts.HostsChanged():
		}
	}
}

// start starts the goroutine of a name.
func (r *Resolver) start(ctx context.Context, host string) follower {
	ctx, cancel := context.WithCancel(ctx)
	f := follower{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		r.follow(ctx, host)
	}()
	return f
}

// follow looks up a name until ctx ends.
func (r *Resolver) follow(ctx context.Context, host string) {
	n := &name{host: host}
	for {
		addresses, err := r.lookUp(ctx, host)
		if ctx.Err() != nil {
			return
		}
		pause := r.opts.Interval
		if !n.update(r.hosts, addresses, err, r.opts.Log) {
			pause = r.opts.Retry
		}
		t := time.NewTimer(wait.Jitter(pause, spread))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// lookUp looks up a name once, as soon as a slot is free.
func (r *Resolver) lookUp(ctx context.Context, host string) ([]string, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r.slots <- struct{}{}:
	}
	defer func() { <-r.slots }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := r.opts.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	return preferIPv4(found), nil
}

// preferIPv4 returns the IPv4 addresses, or the IPv6 addresses if there are no others. Envoy
// Gateway configures Envoy in the same way for the names of Backends: a cluster without
// connectivity in one family must not lose a part of its requests.
func preferIPv4(found []netip.Addr) []string {
	var v4, v6 []string
	for _, a := range found {
		if a = a.Unmap(); a.Is4() {
			v4 = append(v4, a.String())
			continue
		}
		v6 = append(v6, a.WithZone("").String())
	}
	if len(v4) == 0 {
		v4 = v6
	}
	slices.Sort(v4)
	return slices.Compact(v4)
}

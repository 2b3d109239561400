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
	// defaultInterval between two looks at a name. The system's resolver tells no
	// lifetimes; kubelets and Envoy Gateway's own names are no fresher.
	defaultInterval = 30 * time.Second

	// defaultRetry is the pause after a look that failed, and after the first that
	// finds a name gone.
	defaultRetry = 5 * time.Second

	// timeout of a look, with all that the resolver tries.
	timeout = 10 * time.Second

	// parallel looks at most: thousands of names are not asked for at once.
	parallel = 16

	// spread is the part of an interval by which looks come later, at most, so that
	// they do not stay together.
	spread = 0.1
)

// Hosts are the names that are wanted, and take their addresses. An index.Store is
// one.
type Hosts interface {
	// Hosts are the names, each once.
	Hosts() []string

	// HostsChanged is sent to when they may be others.
	HostsChanged() <-chan struct{}

	// SetHost tells the addresses of a name. None means that it has none.
	SetHost(host string, addresses []string)
}

// A Lookup finds the addresses of a name, of both families. It is
// net.Resolver.LookupNetIP for the network ip.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// Options of a Resolver.
type Options struct {
	// Lookup is the system's resolver by default.
	Lookup Lookup

	// Interval between two looks at a name. Zero means 30 seconds.
	Interval time.Duration

	// Retry is the pause after a look that failed. Zero means 5 seconds.
	Retry time.Duration

	// Log may be nil.
	Log logging.Logger
}

// A Resolver keeps the addresses of names up to date.
type Resolver struct {
	hosts Hosts
	opts  Options

	// slots are as many as there may be looks at once.
	slots chan struct{}
}

// New returns a resolver. Have Run running.
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

// Run until ctx ends. Each name has a goroutine, which mostly waits. Names that
// nobody wants any more are forgotten.
func (r *Resolver) Run(ctx context.Context) error {
	running := map[string]follower{}
	defer func() {
		for _, f := range running {
			<-f.ended
		}
	}()
	// Before the wait, so that no name is waited for that has not heard.
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

func (r *Resolver) start(ctx context.Context, host string) follower {
	ctx, cancel := context.WithCancel(ctx)
	f := follower{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		r.follow(ctx, host)
	}()
	return f
}

// follow a name until ctx ends.
func (r *Resolver) follow(ctx context.Context, host string) {
	n := &name{host: host}
	for {
		addresses, err := r.look(ctx, host)
		if ctx.Err() != nil {
			return
		}
		pause := r.opts.Interval
		if !n.take(r.hosts, addresses, err, r.opts.Log) {
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

// look once, when there is a slot.
func (r *Resolver) look(ctx context.Context, host string) ([]string, error) {
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
	return usable(found), nil
}

// usable addresses: those of IPv4, or of IPv6 if there are no others. It is what Envoy
// Gateway has Envoy do with the names of its own Backends, for a cluster that has no
// way to the other family must not lose a part of its requests.
func usable(found []netip.Addr) []string {
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

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/nameserver"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// DNSOptions are the options of an agent that resolves names for the tailnet.
type DNSOptions struct {
	// ConfigMap is the name of the ConfigMap in the pod's namespace that holds the zone. Empty
	// means that the pod resolves no names.
	ConfigMap string

	// Dir is where the agent keeps the zone, for when it starts again while the API server is
	// unavailable.
	Dir string

	// Port is the port to answer on.
	Port uint16
}

// loopback is the address to which tailscaled forwards queries to the machine's address in the
// tailnet, with Userspace networking (tailscale.com wgengine/netstack).
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// A dnsRole is the role of a pod that resolves names for the tailnet.
type dnsRole struct {
	plainRole

	opts   DNSOptions
	kernel bool
	retry  *retrier
	log    logging.Logger
	file   keptFile

	// follow calls fn in the loop with each version of the ConfigMap until ctx is done.
	follow func(ctx context.Context, fn func(*corev1.ConfigMap))
	server *nameserver.Server

	// zone is the encoded zone. Empty until it is known.
	zone string
}

// watch watches the ConfigMap with the zone.
func (d *dnsRole) watch(ctx context.Context) { d.follow(ctx, d.set) }

// close closes the listeners.
func (d *dnsRole) close() { d.server.Close() }

// restore loads the zone of an earlier run.
func (d *dnsRole) restore(context.Context) error {
	b, err := d.file.dir.Read()
	if err != nil || b == nil {
		return err
	}
	if err := d.take(string(b)); err != nil {
		d.log.Info("Ignoring the zone of an earlier run", "error", err)
	}
	return nil
}

// set updates the zone from the ConfigMap. A ConfigMap that is missing or invalid changes
// nothing.
func (d *dnsRole) set(cm *corev1.ConfigMap) {
	if cm == nil {
		d.log.Info("Waiting for ConfigMap", "configmap", d.opts.ConfigMap)
		return
	}
	s, ok := cm.Data[zone.ConfigMapKey]
	if ok && s == d.zone {
		return
	}
	err := errors.Errorf("no key %q", zone.ConfigMapKey)
	if ok {
		err = d.take(s)
	}
	if err != nil {
		d.log.Info("Cannot use ConfigMap", "configmap", d.opts.ConfigMap, "error", err)
		return
	}
	d.file.set(s)
}

func (d *dnsRole) take(s string) error {
	z, err := zone.Decode(s)
	if err != nil {
		return err
	}
	d.zone = s
	d.server.Set(zone.NewTable(z))
	return nil
}

// step listens on the addresses that the tailnet sends queries to.
func (d *dnsRole) step(ctx context.Context, at time.Time, f facts) time.Time {
	if d.zone == "" {
		return time.Time{}
	}
	d.file.write(at, d.retry)
	addrs := []netip.AddrPort{netip.AddrPortFrom(loopback, d.opts.Port)}
	if d.kernel {
		// Never listen on the pod's own addresses: the tailnet's policy decides about access.
		addrs = nil
		for _, a := range f.tailnet.Addresses {
			addrs = append(addrs, netip.AddrPortFrom(a, d.opts.Port))
		}
	}
	if err := d.server.Listen(ctx, addrs); err != nil {
		d.log.Info("Cannot resolve names for the tailnet", "error", err)
		return at.Add(d.retry.pause)
	}
	return time.Time{}
}

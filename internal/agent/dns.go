// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/nameserver"
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

// A dnsLoop is the role of a pod that resolves names for the tailnet.
type dnsLoop struct {
	plainRole

	opts   DNSOptions
	kernel bool
	retry  time.Duration
	log    logging.Logger
	file   keptFile
	server *nameserver.Server

	// zone is the encoded zone. Empty until it is known.
	zone string
}

func (a *Agent) newDNS() *dnsLoop {
	return &dnsLoop{
		opts:   a.opts.DNS,
		kernel: a.opts.Kernel != nil,
		retry:  a.opts.Pauses.Retry,
		log:    a.log,
		file:   keptFile{dir: atomicdir.New(a.opts.DNS.Dir, zone.ConfigMapKey)},
		server: nameserver.New(a.log, a.metrics.resolved),
	}
}

// watch watches the ConfigMap with the zone.
func (d *dnsLoop) watch(ctx context.Context, a *Agent) {
	kube.WatchConfigMap(ctx, a.client, a.opts.zoneConfigMap(), func(cm *corev1.ConfigMap) {
		a.do(ctx, func(*loop) { d.set(cm) })
	})
}

// close closes the listeners.
func (d *dnsLoop) close() { d.server.Close() }

// restore loads the zone of an earlier run.
func (d *dnsLoop) restore() error {
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
func (d *dnsLoop) set(cm *corev1.ConfigMap) {
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

func (d *dnsLoop) take(s string) error {
	z, err := zone.Decode(s)
	if err != nil {
		return err
	}
	d.zone = s
	d.server.Set(zone.NewTable(z))
	return nil
}

// step listens on the addresses that the tailnet sends queries to.
func (d *dnsLoop) step(ctx context.Context, at time.Time, l *loop) time.Time {
	if d.zone == "" {
		return time.Time{}
	}
	d.file.write(at, l)
	addrs := []netip.AddrPort{netip.AddrPortFrom(loopback, d.opts.Port)}
	if d.kernel {
		// Never listen on the pod's own addresses: the tailnet's policy decides about access.
		addrs = nil
		for _, a := range l.tailnet.Addresses {
			addrs = append(addrs, netip.AddrPortFrom(a, d.opts.Port))
		}
	}
	if err := d.server.Listen(ctx, addrs); err != nil {
		d.log.Info("Cannot resolve names for the tailnet", "error", err)
		return at.Add(d.retry)
	}
	return time.Time{}
}

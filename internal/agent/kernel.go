// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"maps"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"tailscale.com/kube/egressservices"
	"tailscale.com/kube/ingressservices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver"
)

const (
	// lookupInterval is the time between two lookups of a backend: Services keep their addresses.
	lookupInterval = 15 * time.Second

	// lookupRetry is the pause after a lookup of a backend that failed.
	lookupRetry = 2 * time.Second
)

// A kernelLoop is the role of a pod whose kernel forwards packets by rules that containerboot
// creates. It does nothing with Userspace networking.
type kernelLoop struct {
	plainRole

	// on reports whether the kernel forwards packets.
	on bool

	// dir is the directory of containerboot's files.
	dir *atomicdir.Dir

	resolver *resolver.Resolver

	// wanted are the services that the kernel should forward.
	wanted plan.Forwards

	// forwards are the services in the ingress config on disk.
	forwards plan.Forwards

	// egress is the egress config on disk. Nil until there is one.
	egress []byte

	// applied are the services that containerboot has set up, once the state Secret is known.
	applied       plan.Forwards
	appliedEgress map[plan.EgressKey]netip.AddrPort
	known         bool

	// forget deletes flows to earlier targets in the kernel. forgotten is the last argument that
	// succeeded.
	forget    func(network.Translations) (uint, error)
	forgotten *network.Translations
}

func newKernel(on bool, dir *atomicdir.Dir, forget func(network.Translations) (uint, error), changed func()) *kernelLoop {
	o := resolver.Options{Interval: lookupInterval, Retry: lookupRetry}
	return &kernelLoop{on: on, dir: dir, forget: forget, resolver: resolver.New(o, func(string) { changed() })}
}

// restore loads the configs that an earlier run has written.
func (k *kernelLoop) restore() error {
	if !k.on {
		return nil
	}
	b, err := k.dir.ReadFile(ingressservices.IngressConfigKey)
	if err != nil {
		return err
	}
	if b != nil {
		if k.forwards, err = plan.ForwardsIn(b); err != nil {
			return err
		}
	}
	k.egress, err = k.dir.ReadFile(egressservices.KeyEgressServices)
	return err
}

// setState reads from the state Secret what containerboot has set up in this pod.
func (k *kernelLoop) setState(s *corev1.Secret, podIP string) error {
	if !k.on || s == nil {
		return nil
	}
	applied, err := plan.IngressApplied(s.Data[ingressservices.IngressConfigKey], podIP)
	egress, eerr := plan.EgressApplied(s.Data[egressservices.KeyEgressServices], podIP)
	if err := errors.Join(err, eerr); err != nil {
		return err
	}
	k.applied, k.appliedEgress, k.known = applied, egress, true
	return k.forgetUDP()
}

// forgetUDP lets UDP clients reach new targets, once containerboot has set them up.
func (k *kernelLoop) forgetUDP() error {
	if k.forget == nil {
		return nil
	}
	t := network.Translations{Ports: map[uint16]netip.AddrPort{}, Addresses: map[netip.Addr]netip.Addr{}}
	for p, to := range k.appliedEgress {
		if p.Protocol == corev1.ProtocolUDP {
			t.Ports[uint16(p.Port)] = to
		}
	}
	for _, c := range k.applied {
		for _, m := range []*ingressservices.Mapping{c.IPv4Mapping, c.IPv6Mapping} {
			if m != nil {
				t.Addresses[m.TailscaleServiceIP] = m.ClusterIP
			}
		}
	}
	if f := k.forgotten; f != nil && maps.Equal(f.Ports, t.Ports) && maps.Equal(f.Addresses, t.Addresses) {
		return nil
	}
	if _, err := k.forget(t); err != nil {
		return err
	}
	k.forgotten = &t
	return nil
}

// forward decides which services the kernel forwards.
func (l *loop) forward(ctx context.Context, services []plan.Service) []plan.Service {
	in := plan.ForwardInput{Attachments: l.attachments, Advertised: l.advertised}
	if k := l.kernel; k.on {
		k.resolver.Set(ctx, plan.ForwardHosts(l.attachments))
		in.Kernel = true
		in.Addresses = k.resolver.Addresses()
		in.Previous = k.forwards
		in.Applied, in.AppliedKnown = k.applied, k.known
	}
	services, wanted := plan.Forward(services, in)
	l.kernel.wanted = wanted
	return services
}

// forwarding returns the services that the kernel should forward out of the served ones. A
// leaving service is forwarded only if it is already forwarded.
func (k *kernelLoop) forwarding(served map[string]plan.Handlers, wanted map[string]plan.Handlers) plan.Forwards {
	if !k.on {
		return nil
	}
	out := maps.Clone(k.wanted)
	if out == nil {
		out = make(plan.Forwards)
	}
	for name := range served {
		if c, ok := k.forwards[name]; ok && wanted[name] == nil {
			out[name] = c
		}
	}
	return out
}

// has reports whether the config on disk already has these services.
func (k *kernelLoop) has(f plan.Forwards) bool {
	return !k.on || k.forwards != nil && k.forwards.Equal(f)
}

// cautious reports whether the agent may change a file only while the API server is available:
// with Kernel networking containerboot reads its state Secret at each change, and exits when it
// cannot (cmd/containerboot/ingressservices.go).
func (k *kernelLoop) cautious(written bool) bool { return k.on && written }

// writeProxies writes the serve config, and the config of the services that the kernel
// forwards.
func (l *loop) writeProxies(serve []byte, f plan.Forwards) (bool, error) {
	if !l.kernel.on {
		return l.serve.Write(serve)
	}
	serve, err := plan.WithTun(serve, f)
	if err != nil {
		return false, err
	}
	ingress, err := plan.IngressConfig(f)
	if err != nil {
		return false, err
	}
	changed, err := l.serve.WriteFiles(map[string][]byte{
		l.serve.Name():                   serve,
		ingressservices.IngressConfigKey: ingress,
	})
	if err == nil {
		l.kernel.forwards = f
	}
	return changed, err
}

// write writes the config from which containerboot makes the kernel forward the pod's ports.
func (e *egressLoop) write(now time.Time, l *loop) error {
	k := e.kernel
	if !k.on || !e.known {
		return nil
	}
	// The peers are unknown while tailscaled is unavailable.
	if k.egress != nil && (!l.tailnet.Running || l.tailnet.Peers == 0) {
		return nil
	}
	b, err := plan.EgressServices(e.ports)
	if err != nil || bytes.Equal(k.egress, b) {
		return err
	}
	if k.cautious(k.egress != nil) && !l.reached(now) {
		return nil
	}
	if _, err := k.dir.WriteFiles(map[string][]byte{egressservices.KeyEgressServices: b}); err != nil {
		return err
	}
	k.egress = b
	l.metrics.wrote(fileEgress)
	l.log.Debug("Wrote egress config")
	return nil
}

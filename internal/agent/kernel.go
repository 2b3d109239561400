// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"tailscale.com/kube/egressservices"
	"tailscale.com/kube/ingressservices"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/network"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver"
)

const (
	// lookupInterval is the time between two lookups of a backend: Services keep their addresses.
	lookupInterval = 15 * time.Second

	// lookupRetry is the pause after a lookup of a backend that failed.
	lookupRetry = 2 * time.Second
)

// KernelOptions are the options of an agent whose pod has Kernel networking.
type KernelOptions struct {
	// PodAddresses are the pod's addresses. Empty means unknown.
	PodAddresses []netip.Addr

	// Forwarding are the families of which the kernel forwards packets.
	Forwarding address.Families

	// Report is what was found out before tailscaled started.
	Report network.Report

	// ForgetUDP deletes UDP flows in the kernel whose destinations differ from those that
	// containerboot has set up (network.ForgetUDP). Nil deletes none.
	ForgetUDP func(network.Translations) (uint, error)

	// OpenTCP reports whether a connection is open that the kernel forwards (network.OpenTCP).
	// With nil, drains wait for none.
	OpenTCP func(network.Forwarded) (bool, error)
}

// A kernelRole is the role of a pod whose kernel forwards packets by rules that containerboot
// creates. It does nothing with Userspace networking.
type kernelRole struct {
	plainRole

	// enabled reports whether the kernel forwards packets. Otherwise the options are empty.
	enabled bool
	KernelOptions

	// dir is the directory of containerboot's files.
	dir *atomicdir.Dir

	resolver *resolver.Resolver

	// wanted are the services that the kernel should forward.
	wanted plan.Forwards

	// forwards are the services in the ingress config on disk.
	forwards plan.Forwards

	// applied are the services that containerboot has set up, once the state Secret is known.
	applied       plan.Forwards
	appliedEgress map[plan.EgressKey][]netip.AddrPort
	loaded        bool

	// forgotten is the last argument of ForgetUDP that succeeded.
	forgotten *network.Translations

	// joined reports whether tailscaled has run in its tailnet.
	joined bool
}

// newKernel returns the role of a pod with Kernel networking, or one that does nothing without
// options.
func newKernel(o *KernelOptions, dir *atomicdir.Dir, changed func()) *kernelRole {
	k := &kernelRole{enabled: o != nil, dir: dir}
	if o != nil {
		k.KernelOptions = *o
	}
	lookup := resolver.Options{Interval: lookupInterval, Retry: lookupRetry, Lookup: k.lookup(net.DefaultResolver.LookupNetIP)}
	k.resolver = resolver.New(lookup, func(string) { changed() })
	return k
}

// lookup returns a function that looks up both families of a host, and fails if one of them fails
// that the host had before: package net would return the other one alone, and the service would be
// forwarded no more.
func (k *kernelRole) lookup(fn resolver.Lookup) resolver.Lookup {
	return func(ctx context.Context, _, host string) ([]netip.Addr, error) {
		previous, _ := k.resolver.Get(host)
		families := address.FamiliesOf(previous...)
		var out []netip.Addr
		var failed []error
		for _, family := range []struct {
			network string
			present bool
		}{{"ip4", families.IPv4}, {"ip6", families.IPv6}} {
			addrs, err := fn(ctx, family.network, address.Absolute(host))
			var dns *net.DNSError
			if err != nil && (!errors.As(err, &dns) || !dns.IsNotFound) {
				if family.present {
					return nil, err
				}
				failed = append(failed, err)
			}
			out = append(out, addrs...)
		}
		if len(out) > 0 {
			return out, nil
		}
		return nil, errors.Join(failed...)
	}
}

// families returns the families in which the kernel forwards packets of this pod: the pod and
// tailscaled have addresses of them. An unknown list counts as both.
func (k *kernelRole) families(tn localapi.State) address.Families {
	out := k.Forwarding
	for _, addrs := range [][]netip.Addr{k.PodAddresses, tn.Addresses} {
		if len(addrs) > 0 {
			out = out.And(address.FamiliesOf(addrs...))
		}
	}
	return out
}

// ipv6First reports whether the pod's first address is IPv6.
func (k *kernelRole) ipv6First() bool {
	return len(k.PodAddresses) > 0 && k.PodAddresses[0].Is6()
}

// step remembers that tailscaled works.
func (k *kernelRole) step(_ context.Context, _ time.Time, f facts) time.Time {
	k.joined = k.joined || f.tailnet.Running
	return time.Time{}
}

// report adds the problem of the node to a status.
func (k *kernelRole) report(s *v1alpha1.MachineAgentStatus) {
	if k.enabled {
		s.Network = k.Report.Problem(k.Forwarding != address.Families{}, k.joined)
	}
}

// drain has a drain wait for connections that the kernel forwards.
func (k *kernelRole) drain(_ time.Time, d *drain) { d.polled = k.enabled && k.OpenTCP != nil }

// busy reports whether connections are open that the kernel forwards. If that cannot be found
// out, the drain waits as long as it may.
func (k *kernelRole) busy() bool {
	if !k.enabled || k.OpenTCP == nil {
		return false
	}
	f := network.Forwarded{First: uint16(egress.FirstPort), Last: uint16(egress.LastPort), Addresses: map[netip.Addr]bool{}}
	for _, forwards := range []plan.Forwards{k.applied, k.forwards} {
		for _, c := range forwards {
			for _, m := range mappings(c) {
				f.Addresses[m.TailscaleServiceIP] = true
			}
		}
	}
	open, err := k.OpenTCP(f)
	return open || err != nil
}

// mappings returns the mappings that a config has.
func mappings(c ingressservices.Config) []*ingressservices.Mapping {
	return slices.DeleteFunc([]*ingressservices.Mapping{c.IPv4Mapping, c.IPv6Mapping}, func(m *ingressservices.Mapping) bool { return m == nil })
}

// restore loads the ingress config that an earlier run has written.
func (k *kernelRole) restore(context.Context) error {
	if !k.enabled {
		return nil
	}
	b, err := k.dir.ReadFile(ingressservices.IngressConfigKey)
	if err != nil {
		return err
	}
	if b != nil {
		k.forwards, err = plan.ForwardsIn(b)
	}
	return err
}

// setState reads from the state Secret what containerboot has set up in this pod.
func (k *kernelRole) setState(s *corev1.Secret, podIP string) error {
	if !k.enabled || s == nil {
		return nil
	}
	applied, err := plan.IngressApplied(s.Data[ingressservices.IngressConfigKey], podIP)
	egress, eerr := plan.EgressApplied(s.Data[egressservices.KeyEgressServices], podIP)
	if err := errors.Join(err, eerr); err != nil {
		return err
	}
	k.applied, k.appliedEgress, k.loaded = applied, egress, true
	return k.forgetUDP()
}

// forgetUDP lets UDP clients reach new targets, once containerboot has set them up.
func (k *kernelRole) forgetUDP() error {
	if k.ForgetUDP == nil {
		return nil
	}
	t := network.Translations{Ports: map[uint16][]netip.AddrPort{}, Addresses: map[netip.Addr]netip.Addr{}}
	for p, targets := range k.appliedEgress {
		if p.Protocol == corev1.ProtocolUDP {
			t.Ports[uint16(p.Port)] = targets
		}
	}
	for _, c := range k.applied {
		for _, m := range mappings(c) {
			t.Addresses[m.TailscaleServiceIP] = m.ClusterIP
		}
	}
	if f := k.forgotten; f != nil && maps.EqualFunc(f.Ports, t.Ports, slices.Equal) && maps.Equal(f.Addresses, t.Addresses) {
		return nil
	}
	if _, err := k.ForgetUDP(t); err != nil {
		return err
	}
	k.forgotten = &t
	return nil
}

// forward decides which services the kernel forwards.
func (k *kernelRole) forward(ctx context.Context, services []plan.Service, f facts) []plan.Service {
	input := plan.ForwardInput{Attachments: f.attachments, Advertised: f.advertised}
	if k.enabled {
		k.resolver.Set(ctx, plan.ForwardHosts(f.attachments))
		input.Kernel, input.Families, input.Dropped = true, k.families(f.tailnet), k.Report.Dropped != ""
		input.Addresses = k.resolver.Addresses()
		input.Previous = k.forwards
		input.Applied, input.AppliedKnown = k.applied, k.loaded
	}
	services, k.wanted = plan.Forward(services, input)
	return services
}

// forwarding returns the services that the kernel should forward out of the served ones. A
// leaving service is forwarded only if it is already forwarded.
func (k *kernelRole) forwarding(served map[string]plan.Handlers, wanted map[string]plan.Handlers) plan.Forwards {
	if !k.enabled {
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
func (k *kernelRole) has(f plan.Forwards) bool {
	return !k.enabled || k.forwards != nil && k.forwards.Equal(f)
}

// cautious reports whether the agent may change a file only while the API server is available:
// with Kernel networking containerboot reads its state Secret at each change, and exits when it
// cannot (cmd/containerboot/ingressservices.go).
func (k *kernelRole) cautious(written bool) bool { return k.enabled && written }

// write writes the serve config, and the config of the services that the kernel forwards.
func (k *kernelRole) write(serve []byte, f plan.Forwards) (bool, error) {
	if !k.enabled {
		return k.dir.Write(serve)
	}
	serve, err := plan.WithTun(serve, f)
	if err != nil {
		return false, err
	}
	ingress, err := plan.IngressConfig(f)
	if err != nil {
		return false, err
	}
	changed, err := k.dir.WriteFiles(map[string][]byte{
		k.dir.Name():                     serve,
		ingressservices.IngressConfigKey: ingress,
	})
	if err == nil {
		k.forwards = f
	}
	return changed, err
}

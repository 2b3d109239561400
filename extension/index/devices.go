// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// RoutePolicyLabel is on the Discoveries by which the devices of a policy's matches are
// found. Its value is empty: their names tell whose they are.
const RoutePolicyLabel = "gateway.tailscale.com/route-policy"

// A DeviceQuery is what a match asks for of a tailnet's devices. All lists are sorted.
type DeviceQuery struct {
	Tailnet                string
	Tags, Hostnames, Users []string
}

// queryOf a match. Nil if it asks for none.
func queryOf(in *gatewayv1alpha1.TailnetDeviceMatch) *DeviceQuery {
	if in.Tailnet == "" {
		return nil
	}
	q := &DeviceQuery{
		Tailnet:   in.Tailnet,
		Hostnames: slices.Sorted(slices.Values(in.Hostnames)),
		Users:     slices.Sorted(slices.Values(in.Users)),
	}
	for _, t := range in.Tags {
		q.Tags = append(q.Tags, string(t))
	}
	slices.Sort(q.Tags)
	return q
}

// Discovery that looks for the devices, for a policy.
func (q *DeviceQuery) Discovery(policy types.NamespacedName) types.NamespacedName {
	h := sum(*q)
	b := []byte{byte(h >> 56), byte(h >> 48), byte(h >> 40), byte(h >> 32), byte(h >> 24)}
	return sibling(policy, names.RoutePolicyDiscovery(policy.Name, hex.EncodeToString(b)))
}

// found is what a Discovery found.
type found struct {
	// addresses of all devices, sorted.
	addresses []netip.Prefix
	devices   int32

	// problem says why these are not all, for people.
	problem string
}

// parseDiscovery of a policy. Nil is that of anything else.
func parseDiscovery(o *tailnetv1alpha1.Discovery) *found {
	if _, ok := o.Labels[RoutePolicyLabel]; !ok {
		return nil
	}
	out := &found{}
	at := o.Status.AtProvider
	for _, d := range at.Discovered {
		out.devices++
		for _, s := range d.Addresses {
			// What is no address is nobody's.
			if a, err := netip.ParseAddr(s); err == nil {
				out.addresses = append(out.addresses, netip.PrefixFrom(a, a.BitLen()))
			}
		}
	}
	slices.SortFunc(out.addresses, netip.Prefix.Compare)
	ready := o.GetCondition(xpv2.TypeReady)
	refused := ready.Status == corev1.ConditionFalse && (ready.Reason == meta.ReasonNamespaceNotAllowed || ready.Reason == meta.ReasonInvalidSelector)
	switch {
	case refused && at.Count != nil:
		out.problem = "Devices are looked for no more, and those count that were found last: " + ready.Message
	case refused:
		out.problem = "Devices are not known: " + ready.Message
	case at.Truncated && at.Count != nil:
		out.problem = fmt.Sprintf("%d devices match, and only %d count; ask for fewer", *at.Count, out.devices)
	case at.Count == nil:
		out.problem = "Devices are not known yet"
		for _, said := range []xpv2.Condition{o.GetCondition(xpv2.TypeSynced), ready} {
			if said.Status == corev1.ConditionFalse && said.Message != "" {
				out.problem = "Devices are not known: " + said.Message
				break
			}
		}
	}
	return out
}

// putDiscovery keeps what was found for a policy.
func (w *world) putDiscovery(o *tailnetv1alpha1.Discovery, n types.NamespacedName, gone bool, d *dirty) {
	f := parseDiscovery(o)
	put(w.found, n, f, gone || f == nil)
	if p, ok := w.asks[n]; ok {
		d.policies[p] = struct{}{}
	}
}

// sameFound reports whether an update of a Discovery is none to policies.
func sameFound(old, now client.Object) bool {
	is, ok := now.(*tailnetv1alpha1.Discovery)
	if !ok {
		return true
	}
	was, ok := old.(*tailnetv1alpha1.Discovery)
	return ok && reflect.DeepEqual(parseDiscovery(was), parseDiscovery(is))
}

// stripDiscovery of all that is not for a policy.
func stripDiscovery(o *tailnetv1alpha1.Discovery) {
	if _, ok := o.Labels[RoutePolicyLabel]; !ok {
		o.Spec, o.Status = tailnetv1alpha1.DiscoverySpec{}, tailnetv1alpha1.DiscoveryStatus{}
	}
}

// resolve the devices of a policy's rules.
func (w *world) resolve(p *RoutePolicy) {
	p.Notices, p.Devices = map[string]string{}, map[string]int32{}
	for i, r := range p.Rules {
		if !slices.ContainsFunc(r.Matches, func(m PolicyMatch) bool { return m.Devices != nil }) {
			continue
		}
		now := *r
		now.Matches = slices.Clone(r.Matches)
		for j := range now.Matches {
			m := &now.Matches[j]
			if m.Devices == nil {
				continue
			}
			f := w.found[m.Devices.Discovery(p.Name)]
			if f == nil {
				f = &found{problem: "Devices are not known yet"}
			}
			m.Clients = within(f.addresses, m.Clients)
			p.Devices[r.Name] += f.devices
			if !strings.Contains(p.Notices[r.Name], f.problem) {
				p.Notices[r.Name] = join(p.Notices[r.Name], f.problem)
			}
		}
		p.Rules[i] = &now
	}
}

// within are the addresses that are in one of the ranges. Nil ranges are all.
func within(addresses, ranges []netip.Prefix) []netip.Prefix {
	out := []netip.Prefix{}
	for _, a := range addresses {
		if ranges == nil || slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a.Addr()) }) {
			out = append(out, a)
		}
	}
	return out
}

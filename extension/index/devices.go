// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// putDiscovery keeps what was found for a policy.
func (w *world) putDiscovery(o *tailnetv1alpha1.Discovery, n types.NamespacedName, gone bool, d *dirty) {
	f := parse.ParseDiscovery(o)
	put(w.found, n, f, gone || f == nil)
	if p, ok := w.asks[n]; ok {
		d.policies[p] = struct{}{}
	}
}

// resolve the devices of a policy's rules.
func (w *world) resolve(p *ir.RoutePolicy) {
	p.Notices, p.Devices = map[string]string{}, map[string]int32{}
	for i, r := range p.Rules {
		if !slices.ContainsFunc(r.Matches, func(m ir.PolicyMatch) bool { return m.Devices != nil }) {
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
				f = &parse.Discovered{Problem: "Devices are not known yet"}
			}
			m.Clients = within(f.Addresses, m.Clients)
			p.Devices[r.Name] += f.Devices
			if !strings.Contains(p.Notices[r.Name], f.Problem) {
				p.Notices[r.Name] = join(p.Notices[r.Name], f.Problem)
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

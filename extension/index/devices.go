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

// putDiscovery stores the result of a policy's Discovery.
func putDiscovery(all *objects, o *tailnetv1alpha1.Discovery, n types.NamespacedName, deleted bool, p *pending) {
	f := parse.ParseDiscovery(o)
	put(all.discovered, n, f, deleted || f == nil)
	if policy, ok := all.discoverers[n]; ok {
		p.markName(policySection, policy)
	}
}

// deniesUnknown says what a Deny rule does while not all devices of a match are known.
const deniesUnknown = "until all are known, the rule denies every client that meets its other conditions"

// findDevices sets the clients of the policy's matches to the addresses of the devices that
// they select. While not all of these are known, a Deny rule denies every client that meets
// the other conditions: the client may be one of the devices.
func findDevices(all *objects, p *ir.RoutePolicy) {
	p.Notices, p.Devices = map[string]string{}, map[string]int32{}
	for i, r := range p.Rules {
		if !slices.ContainsFunc(r.Matches, func(m ir.PolicyMatch) bool { return m.Devices != nil }) {
			continue
		}
		updated := *r
		updated.Matches = slices.Clone(r.Matches)
		for j := range updated.Matches {
			m := &updated.Matches[j]
			if m.Devices == nil {
				continue
			}
			f := all.discovered[m.Devices.Discovery(p.Name)]
			if f == nil {
				f = &parse.Discovered{Problem: "Devices are not known yet"}
			}
			closed := r.Deny && !f.Complete
			if !closed {
				m.Clients = inRanges(f.Addresses, m.Clients)
			}
			p.Devices[r.Name] += f.Devices
			if !strings.Contains(p.Notices[r.Name], f.Problem) {
				p.Notices[r.Name] = join(p.Notices[r.Name], f.Problem)
			}
			if closed && !strings.Contains(p.Notices[r.Name], deniesUnknown) {
				p.Notices[r.Name] = join(p.Notices[r.Name], deniesUnknown)
			}
		}
		p.Rules[i] = &updated
	}
}

// inRanges returns the addresses that are in one of the ranges. Nil ranges contain all
// addresses.
func inRanges(addresses, ranges []netip.Prefix) []netip.Prefix {
	out := []netip.Prefix{}
	for _, a := range addresses {
		if ranges == nil || slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a.Addr()) }) {
			out = append(out, a)
		}
	}
	return out
}

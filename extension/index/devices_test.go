// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// TestDevices checks how results of a Discovery change the rules of a policy and the digest
// of its Gateway.
func TestDevices(t *testing.T) {
	const rule = `{name: a, actions: [{type: Redirect, redirect: {hostname: a.example.com}}], matches: [{tailnetDevice: {tailnet: corp, tags: ["tag:b", "tag:a"], addresses: [100.64.0.0/24, "fd7a::/16"]}}]}`
	gw := types.NamespacedName{Namespace: "infra", Name: "gw"}
	s := NewStore()
	apply(t, s, false, routeToWeb, policyOf("p", rule), gatewayOf("gw"))
	rules := func() *ir.PolicyRule {
		return s.Snapshot().Policies().Attached(ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: name("web")})[0]
	}
	p := s.Snapshot().Edit().Policies.Get(name("p"))
	var search types.NamespacedName
	for n, q := range p.Discoveries() {
		search = n
		if diff := cmp.Diff(&ir.DeviceQuery{Tailnet: "corp", Tags: []string{"tag:a", "tag:b"}}, q); diff != "" {
			t.Errorf("device query: -want, +got:\n%s", diff)
		}
	}
	found := func(labels, status string) string {
		return "apiVersion: tailnet.gateway.tailscale.com/v1alpha1\nkind: Discovery\nmetadata: {name: " + search.Name + ", namespace: " + search.Namespace +
			", generation: 1, labels: {" + labels + "}}\nspec: {forProvider: {}}\nstatus: " + status + "\n"
	}
	const ours = ir.RoutePolicyLabel + `: ""`
	cases := []struct {
		reason  string
		doc     string
		deleted bool
		want    []netip.Prefix
		notice  string
		devices int32
		same    bool
	}{
		{
			reason: "No client should match before devices are found.", doc: found(ours, "{}"),
			notice: "Devices are not known yet", same: true,
		},
		{
			reason: "The notice should say why no devices are found.",
			doc:    found(ours, "{conditions: [{type: Synced, status: 'False', reason: ReconcileError, message: no tailnet, lastTransitionTime: null}]}"),
			notice: "Devices are not known: no tailnet", same: true,
		},
		{
			reason: "The notice should say that the namespace may not use the tailnet.",
			doc:    found(ours, "{conditions: [{type: Synced, status: 'False', reason: ReconcileError, message: 'connect failed: not here', lastTransitionTime: null}, {type: Ready, status: 'False', reason: NamespaceNotAllowed, message: not here, lastTransitionTime: null}]}"),
			notice: "Devices are not known: not here", same: true,
		},
		{
			reason: "Addresses of the devices should match if they are in the ranges.",
			doc:    found(ours, "{atProvider: {count: 2, discovered: [{source: Devices, name: b, addresses: [100.64.0.9, 'fd7a::9', word]}, {source: Devices, name: a, addresses: [100.64.0.7, 100.99.0.7]}]}}"),
			want:   []netip.Prefix{netip.MustParsePrefix("100.64.0.7/32"), netip.MustParsePrefix("100.64.0.9/32"), netip.MustParsePrefix("fd7a::9/128")}, devices: 2,
		},
		{
			reason: "The notice should say that more devices match.",
			doc:    found(ours, "{atProvider: {count: 2, truncated: true, discovered: [{source: Devices, name: a, addresses: [100.64.0.7]}]}}"),
			want:   []netip.Prefix{netip.MustParsePrefix("100.64.0.7/32")}, devices: 1, notice: "2 devices match, and only 1 count; ask for fewer",
		},
		{
			reason: "The notice should say that the search for devices has stopped.",
			doc:    found(ours, "{atProvider: {count: 1, discovered: [{source: Devices, name: a, addresses: [100.64.0.7]}]}, conditions: [{type: Ready, status: 'False', reason: NamespaceNotAllowed, message: not here, lastTransitionTime: null}]}"),
			want:   []netip.Prefix{netip.MustParsePrefix("100.64.0.7/32")}, devices: 1, notice: "Devices are looked for no more, and those count that were found last: not here", same: true,
		},
		{
			reason: "A Discovery without the label of policies should be ignored.",
			doc:    found("", "{atProvider: {count: 1, discovered: [{source: Devices, name: a, addresses: [100.64.0.1]}]}}"),
			notice: "Devices are not known yet",
		},
		{
			reason: "The devices should be removed with the Discovery.", doc: found(ours, "{}"), deleted: true,
			notice: "Devices are not known yet", same: true,
		},
	}
	for _, tc := range cases {
		previous := s.Snapshot().GatewayDigest(gw)
		apply(t, s, tc.deleted, tc.doc)
		if diff := cmp.Diff(tc.want, rules().Matches[0].Clients, cmpopts.EquateComparable(netip.Prefix{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
		}
		if rules().Matches[0].Clients == nil {
			t.Errorf("%s Want an empty list of clients: nil would match all.", tc.reason)
		}
		p := s.Snapshot().Edit().Policies.Get(name("p"))
		if p.Notices["a"] != tc.notice || p.Devices["a"] != tc.devices {
			t.Errorf("%s Got notice %q and %d devices, want %q and %d", tc.reason, p.Notices["a"], p.Devices["a"], tc.notice, tc.devices)
		}
		if same := previous == s.Snapshot().GatewayDigest(gw); same != tc.same {
			t.Errorf("%s Got the same digest: %t", tc.reason, same)
		}
	}
	other := strings.Replace(rule, "tag:a", "tag:c", 1)
	apply(t, s, false, policyOf("p", other))
	for n := range s.Snapshot().Edit().Policies.Get(name("p")).Discoveries() {
		if n == search {
			t.Error("want another Discovery for another query")
		}
	}
}

// TestDevicesOfSeveralMatches checks that each match has a separate Discovery.
func TestDevicesOfSeveralMatches(t *testing.T) {
	s := directStore()
	apply(t, s, false, routeToWeb, policyOf("p", `{name: a, actions: [{type: Deny}], matches: [{tailnetDevice: {tailnet: corp, tags: ["tag:a"]}}, {tailnetDevice: {tailnet: corp, tags: ["tag:b"]}}]}`))
	for n, q := range s.Snapshot().Edit().Policies.Get(name("p")).Discoveries() {
		if q.Tags[0] != "tag:a" {
			continue
		}
		apply(t, s, false, "apiVersion: tailnet.gateway.tailscale.com/v1alpha1\nkind: Discovery\nmetadata: {name: "+n.Name+", namespace: "+n.Namespace+
			", labels: {"+ir.RoutePolicyLabel+": \"\"}}\nspec: {forProvider: {}}\nstatus: {atProvider: {count: 9, truncated: true, discovered: [{addresses: [100.64.0.7]}]}}\n")
	}
	const want = "9 devices match, and only 1 count; ask for fewer; until all are known, the rule denies every client that meets its other conditions; Devices are not known yet"
	if got := s.Snapshot().Edit().Policies.Get(name("p")).Notices["a"]; got != want {
		t.Errorf("The notice should list the problems of all matches: want %q, got %q", want, got)
	}
}

// TestDenyUnknownDevices checks that a Deny rule denies every client that may be one of its
// devices while not all of them are known.
func TestDenyUnknownDevices(t *testing.T) {
	ranges := []netip.Prefix{netip.MustParsePrefix("100.64.0.0/24")}
	found := []netip.Prefix{netip.MustParsePrefix("100.64.0.7/32")}
	const device = "discovered: [{source: Devices, name: a, addresses: ['::ffff:100.64.0.7', 100.99.0.7]}]"
	cases := map[string]struct {
		reason    string
		addresses string
		status    string
		want      []netip.Prefix
		denies    bool
	}{
		"NotYet":       {reason: "Before the tailnet was searched, every client is denied.", want: nil, denies: true},
		"Searching":    {reason: "While the first search fails, every client is denied.", status: "{}", want: nil, denies: true},
		"InRanges":     {reason: "Clients that other conditions exclude are not denied.", addresses: ", addresses: [100.64.0.0/24]", want: ranges, denies: true},
		"Truncated":    {reason: "A device beyond the limit is denied.", status: "{atProvider: {count: 2, truncated: true, " + device + "}}", want: nil, denies: true},
		"LookedNoMore": {reason: "A device that appears after the last search is denied.", status: "{atProvider: {count: 1, " + device + "}, conditions: [{type: Ready, status: 'False', reason: NamespaceNotAllowed, message: not here, lastTransitionTime: null}]}", want: nil, denies: true},
		"Known":        {reason: "Once all devices are known, only these are denied.", addresses: ", addresses: [100.64.0.0/24]", status: "{atProvider: {count: 1, " + device + "}}", want: found},
		"None":         {reason: "If no device matches, none is denied.", status: "{atProvider: {count: 0}}", want: []netip.Prefix{}},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			s := directStore()
			apply(t, s, false, routeToWeb, policyOf("p", `{name: a, actions: [{type: Deny}], matches: [{tailnetDevice: {tailnet: corp, tags: ["tag:a"]`+tc.addresses+`}}]}`))
			if tc.status != "" {
				for n := range s.Snapshot().Edit().Policies.Get(name("p")).Discoveries() {
					apply(t, s, false, "apiVersion: tailnet.gateway.tailscale.com/v1alpha1\nkind: Discovery\nmetadata: {name: "+n.Name+", namespace: "+n.Namespace+
						", labels: {"+ir.RoutePolicyLabel+": \"\"}}\nspec: {forProvider: {}}\nstatus: "+tc.status+"\n")
				}
			}
			got := s.Snapshot().Policies().Attached(ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: name("web")})[0].Matches[0].Clients
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("\n%s\nClients: -want, +got:\n%s", tc.reason, diff)
			}
			if says := strings.Contains(s.Snapshot().Edit().Policies.Get(name("p")).Notices["a"], deniesUnknown); says != tc.denies {
				t.Errorf("\n%s\nThe notice says so: want %t, got %t", tc.reason, tc.denies, says)
			}
		})
	}
}

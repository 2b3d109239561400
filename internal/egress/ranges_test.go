// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

func TestExpand(t *testing.T) {
	cases := map[string]struct {
		reason string
		cidr   string
		want   []string
		count  int
	}{
		"IPv4":     {reason: "The network's own address and its broadcast address have no host.", cidr: "10.1.1.8/30", want: []string{"plc-10-1-1-9 10.1.1.9", "plc-10-1-1-10 10.1.1.10"}},
		"Two":      {reason: "A range of two addresses has two hosts (RFC 3021).", cidr: "10.1.1.8/31", want: []string{"plc-10-1-1-8 10.1.1.8", "plc-10-1-1-9 10.1.1.9"}},
		"One":      {reason: "A range of one address has one host.", cidr: "10.1.1.8/32", want: []string{"plc-10-1-1-8 10.1.1.8"}},
		"IPv6":     {reason: "A name has the last group of an IPv6 address.", cidr: "fd00::1:fe/127", want: []string{"plc-fe fd00::1:fe", "plc-ff fd00::1:ff"}},
		"Largest":  {reason: "A range has at most 256 addresses.", cidr: "10.1.1.0/24", count: 254},
		"Largest6": {reason: "A range has at most 256 addresses.", cidr: "fd00::100/120", count: 256},
		"Last":     {reason: "The last address of all ends a range.", cidr: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127", want: []string{"plc-fffe ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", "plc-ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}},
		"TooLarge": {reason: "The schema refuses a larger range, and an input that passed it has no endpoints.", cidr: "10.1.0.0/23", want: []string{}},
		"Huge":     {reason: "The size of a huge range must not overflow.", cidr: "::/0", want: []string{}},
		"Unmasked": {reason: "The schema refuses an address with further bits.", cidr: "10.1.1.9/30", want: []string{}},
		"Invalid":  {reason: "The schema refuses what is no range.", cidr: "10.1.1.9", want: []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Expand([]gatewayv1alpha1.Endpoint{
				{Name: "first", TailscaleIP: "100.64.0.1"},
				{Name: "plc", TailscaleCIDR: tc.cidr, Port: ptr.To[int32](502)},
				{Name: "last", TailscaleIP: "100.64.0.2"},
			})
			if got[0].Name != "first" || got[len(got)-1].Name != "last" {
				t.Errorf("\n%s\nExpand(...): other endpoints must keep their place, got %v", tc.reason, got)
			}
			hosts := make([]string, 0, len(got))
			for _, ep := range got[1 : len(got)-1] {
				hosts = append(hosts, fmt.Sprintf("%s %s", ep.Name, ep.TailscaleIP))
				if ep.TailscaleCIDR != "" || *ep.Port != 502 {
					t.Errorf("\n%s\nExpand(...): an endpoint must have the other fields of its range, got %v", tc.reason, ep)
				}
			}
			if tc.count > 0 {
				if len(hosts) != tc.count {
					t.Errorf("\n%s\nExpand(...): want %d endpoints, got %d", tc.reason, tc.count, len(hosts))
				}
				return
			}
			if diff := cmp.Diff(tc.want, hosts); diff != "" {
				t.Errorf("\n%s\nExpand(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

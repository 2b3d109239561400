// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var seen = time.Date(2026, 11, 21, 10, 0, 0, 123, time.UTC)

var tailnet = Tailnet{
	Domain: "tail1.ts.net",
	Devices: []tailscale.Device{
		{NodeID: "n2", Name: "api-b.tail1.ts.net", User: "tagged-devices", ConnectedToControl: true, Addresses: []string{"fd7a::2", "100.64.0.2"}, Tags: []string{"tag:prod", "tag:api"}},
		{NodeID: "n1", Name: "api-a.tail1.ts.net", LastSeen: &tsclient.Time{Time: seen}, Addresses: []string{"100.64.0.1", "fd7a::1"}, Tags: []string{"tag:api"}},
		{NodeID: "n3", Name: "Laptop.tail1.ts.net", User: "Amelie@example.com", ConnectedToControl: true, Addresses: []string{"100.64.0.3"}},
	},
	Services: []tailscale.Service{
		{Name: "svc:web", Addrs: []string{"fd7a::9", "100.96.0.1"}, Ports: []string{"tcp:80", "tcp:443"}, Tags: []string{"tag:prod"}},
		{Name: "svc:api-x", Addrs: []string{"100.96.0.2"}, Ports: []string{"tcp:443"}},
	},
}

func TestFind(t *testing.T) {
	sel := func(op v1alpha1.TagSelectorOperator, tag v1alpha1.Tag, values ...v1alpha1.Tag) v1alpha1.TagSelector {
		return v1alpha1.TagSelector{Operator: op, Tag: tag, Values: values}
	}
	cases := map[string]struct {
		reason string
		p      v1alpha1.DiscoveryParameters
		want   []string
		count  int
	}{
		"All":          {reason: "Without filters, all are found, services first, by name.", want: []string{"svc:api-x", "svc:web", "Laptop", "api-a", "api-b"}, count: 5},
		"Devices":      {reason: "Sources select devices alone.", p: v1alpha1.DiscoveryParameters{Sources: []v1alpha1.DiscoverySource{"Devices"}}, want: []string{"Laptop", "api-a", "api-b"}, count: 3},
		"Include":      {reason: "Patterns match names, and names of services also without svc:.", p: v1alpha1.DiscoveryParameters{Include: []string{"api-*"}}, want: []string{"svc:api-x", "api-a", "api-b"}, count: 3},
		"IncludeOne":   {reason: "A question mark matches one character, case-insensitively.", p: v1alpha1.DiscoveryParameters{Include: []string{"lap?op", "svc:w?"}}, want: []string{"Laptop"}, count: 1},
		"FQDN":         {reason: "Patterns match DNS names as a whole.", p: v1alpha1.DiscoveryParameters{Include: []string{"*.tail1.ts.net"}, Exclude: []string{"*-b.tail1.ts.net", "tail1"}}, want: []string{"svc:api-x", "svc:web", "Laptop", "api-a"}, count: 4},
		"Literal":      {reason: "Special characters of other pattern languages are literal.", p: v1alpha1.DiscoveryParameters{Include: []string{"api-[ab]", "(", "api.a"}}},
		"In":           {reason: "One of the values is enough.", p: v1alpha1.DiscoveryParameters{TagSelectors: []v1alpha1.TagSelector{sel("In", "", "tag:prod", "tag:none")}}, want: []string{"svc:web", "api-b"}, count: 2},
		"NotIn":        {reason: "None of the values may be among the tags.", p: v1alpha1.DiscoveryParameters{TagSelectors: []v1alpha1.TagSelector{sel("NotIn", "", "tag:prod", "tag:api")}}, want: []string{"svc:api-x", "Laptop"}, count: 2},
		"ExistsAndNot": {reason: "All selectors must be met.", p: v1alpha1.DiscoveryParameters{TagSelectors: []v1alpha1.TagSelector{sel("Exists", "tag:api"), sel("DoesNotExist", "tag:prod")}}, want: []string{"api-a"}, count: 1},
		"Users":        {reason: "Only the users' devices are found, and no services.", p: v1alpha1.DiscoveryParameters{Users: []string{"amelie@example.com", "bob@example.com"}}, want: []string{"Laptop"}, count: 1},
		"OtherUsers":   {reason: "Tagged devices have no owner.", p: v1alpha1.DiscoveryParameters{Users: []string{"tagged-devices"}}},
		"OnlineOnly":   {reason: "Offline devices are excluded.", p: v1alpha1.DiscoveryParameters{OnlineOnly: true, Sources: []v1alpha1.DiscoverySource{"Devices"}}, want: []string{"Laptop", "api-b"}, count: 2},
		"MaxResults":   {reason: "The list is limited, but not the count, and devices do not displace services.", p: v1alpha1.DiscoveryParameters{MaxResults: 2}, want: []string{"svc:api-x", "svc:web"}, count: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, count := Find(&tc.p, tailnet)
			var got []string
			for _, d := range found {
				got = append(got, d.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || count != tc.count {
				t.Errorf("%s\nFind(...): %d of %d, -want, +got:\n%s", tc.reason, count, tc.count, diff)
			}
		})
	}
}

// TestFindLimit verifies what stays where more matches than the limit.
func TestFindLimit(t *testing.T) {
	at := func(hour int) tsclient.Time {
		return tsclient.Time{Time: time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC)}
	}
	dev := func(name, user string, hour int, tags ...string) tailscale.Device {
		return tailscale.Device{NodeID: "n-" + name, Name: name + ".tail1.ts.net", User: user, Created: at(hour), Tags: tags}
	}
	listed := func(names ...string) (out []v1alpha1.Discovered) {
		for _, n := range names {
			out = append(out, v1alpha1.Discovered{Source: "Devices", Name: n, NodeID: "n-" + n})
		}
		return out
	}
	cases := map[string]struct {
		reason  string
		limit   int32
		tailnet Tailnet
		want    []string
	}{
		"Listed":  {reason: "A new device removes none that is listed, whatever its name and age are.", limit: 1, tailnet: Tailnet{Devices: []tailscale.Device{dev("a", "", 1, "tag:x"), dev("b", "", 2, "tag:x")}, Listed: listed("b")}, want: []string{"b"}},
		"Renamed": {reason: "A device stays listed under another name.", limit: 1, tailnet: Tailnet{Devices: []tailscale.Device{dev("a", "", 1, "tag:x"), {NodeID: "n-b", Name: "z.tail1.ts.net", Tags: []string{"tag:x"}, Created: at(2)}}, Listed: listed("b")}, want: []string{"z"}},
		"Service": {reason: "A new service removes no listed device.", limit: 1, tailnet: Tailnet{Devices: []tailscale.Device{dev("b", "", 2, "tag:x")}, Services: []tailscale.Service{{Name: "svc:a"}}, Listed: listed("b")}, want: []string{"b"}},
		"Oldest":  {reason: "Of new devices, the oldest is listed.", limit: 1, tailnet: Tailnet{Devices: []tailscale.Device{dev("a", "", 2, "tag:x"), dev("b", "", 1, "tag:x")}}, want: []string{"b"}},
		"User":    {reason: "The devices of one user leave a quarter to others.", limit: 4, tailnet: Tailnet{Devices: []tailscale.Device{dev("a", "u", 1), dev("b", "u", 1), dev("c", "u", 1), dev("d", "u", 1), dev("z", "", 9, "tag:x")}}, want: []string{"a", "b", "c", "z"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, count := Find(&v1alpha1.DiscoveryParameters{MaxResults: tc.limit}, tc.tailnet)
			var got []string
			for _, d := range found {
				got = append(got, d.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || count != len(tc.tailnet.Devices)+len(tc.tailnet.Services) {
				t.Errorf("\n%s\nFind(...): %d in all, -want, +got:\n%s", tc.reason, count, diff)
			}
		})
	}
}

func TestFound(t *testing.T) {
	at := metav1.NewTime(seen.Truncate(time.Second))
	want := []v1alpha1.Discovered{
		{Source: "Services", Name: "svc:web", FQDN: "web.tail1.ts.net", Addresses: []string{"100.96.0.1", "fd7a::9"}, Ports: []string{"tcp:443", "tcp:80"}, Tags: []string{"tag:prod"}, Health: HealthUnknown},
		{Source: "Devices", Name: "api-a", FQDN: "api-a.tail1.ts.net", NodeID: "n1", Addresses: []string{"100.64.0.1", "fd7a::1"}, Tags: []string{"tag:api"}, Health: HealthOffline, LastSeen: &at},
		{Source: "Devices", Name: "api-b", FQDN: "api-b.tail1.ts.net", NodeID: "n2", Addresses: []string{"100.64.0.2", "fd7a::2"}, Tags: []string{"tag:api", "tag:prod"}, Health: HealthOnline},
	}
	got, _ := Find(&v1alpha1.DiscoveryParameters{Include: []string{"api-?", "web"}, Exclude: []string{"api-x"}}, tailnet)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Find(...): -want, +got:\n%s", diff)
	}
}

func TestFindDefaultLimit(t *testing.T) {
	var many Tailnet
	for i := range 300 {
		many.Devices = append(many.Devices, tailscale.Device{Name: fmt.Sprintf("d%d.tail1.ts.net", i)})
	}
	if got, count := Find(&v1alpha1.DiscoveryParameters{}, many); len(got) != DefaultMaxResults || count != 300 {
		t.Errorf("Find(...): %d of %d", len(got), count)
	}
}

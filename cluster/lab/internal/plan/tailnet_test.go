// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTailnets(t *testing.T) {
	type want struct {
		domains []string
		err     error
	}
	cases := map[string]struct {
		reason string
		n      int
		family IPFamily
		want   want
	}{
		"One": {
			reason: "One tailnet should be the one that the documentation shows.",
			n:      1,
			want:   want{domains: []string{"tail1234.ts.net"}},
		},
		"Two": {
			reason: "Another tailnet should have a different domain.",
			n:      2,
			want:   want{domains: []string{"tail1234.ts.net", "tail2345.ts.net"}},
		},
		"ErrNone": {
			reason: "A lab without a tailnet should be refused.",
			n:      0,
			want:   want{err: cmpopts.AnyError},
		},
		"ErrTooMany": {
			reason: "More tailnets than names should be refused.",
			n:      MaxTailnets + 1,
			want:   want{err: cmpopts.AnyError},
		},
		"ErrFamily": {
			reason: "An unknown family should be refused.",
			n:      1,
			family: "ipv5",
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Tailnets(tc.n, tc.family)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("\n%s\nTailnets(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			var domains []string
			for _, n := range got {
				domains = append(domains, n.Domain)
			}
			if diff := cmp.Diff(tc.want.domains, domains); diff != "" {
				t.Errorf("\n%s\nTailnets(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTailnetsShareNothing(t *testing.T) {
	all, err := Tailnets(MaxTailnets, IPv4)
	if err != nil {
		t.Fatal(err)
	}
	hub := netip.PrefixFrom(netip.MustParseAddr(HubAddress), HubBits)
	used := map[string]bool{}
	for _, n := range all {
		if !hub.Contains(n.Address) {
			t.Errorf("tailnet %q: %s is not on the hub", n.Name, n.Address)
		}
		// Names of sockets and processes are the tailnet's, a dash, and the client's.
		if strings.Contains(n.Name, "-") {
			t.Errorf("tailnet %q has a dash in its name", n.Name)
		}
		for _, v := range []string{n.Name, n.Address.String(), n.URL, n.Domain, n.Organization, n.ClientID} {
			if used[v] {
				t.Errorf("tailnet %q: another has %q, too", n.Name, v)
			}
			used[v] = true
		}
		if got, err := FindTailnet(n.Name, IPv4); err != nil || got != n {
			t.Errorf("FindTailnet(%q): %v, %v", n.Name, got, err)
		}
	}
	if _, err := FindTailnet("other", IPv4); err == nil {
		t.Error("FindTailnet(...): want an error for an unknown name")
	}
}

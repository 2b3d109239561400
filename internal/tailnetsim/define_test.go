// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDefine checks that services that are created at once are as those that are created one by one.
func TestDefine(t *testing.T) {
	s := newServer(t, Options{Policy: PolicyWithAutoApprover})
	id, err := s.Join(Puppet{Hostname: "proxy", Tags: []string{"tag:k8s"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetOffers(id, Offer{Service: "svc:web", Ports: []uint16{443}}); err != nil {
		t.Fatal(err)
	}
	definition := func(name string) Definition {
		return Definition{Name: name, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}, Annotations: map[string]string{"a": "b"}}
	}
	cases := map[string]struct {
		reason string
		define []Definition
		fails  bool
		want   []string
	}{
		"1Two":    {reason: "All are created.", define: []Definition{definition("svc:web"), definition("svc:api")}, want: []string{"svc:api", "svc:web"}},
		"2Taken":  {reason: "A name is used once, and then none of them is created.", define: []Definition{definition("svc:new"), definition("svc:web")}, fails: true, want: []string{"svc:api", "svc:web"}},
		"3Device": {reason: "A service has not the name of a device.", define: []Definition{definition("svc:proxy")}, fails: true, want: []string{"svc:api", "svc:web"}},
		"4Ports":  {reason: "The rules of the API hold.", define: []Definition{{Name: "svc:none"}}, fails: true, want: []string{"svc:api", "svc:web"}},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		if err := s.Define(tc.define...); (err != nil) != tc.fails {
			t.Errorf("\n%s\n%s: Define(...): %v", tc.reason, name, err)
		}
		var got []string
		for _, v := range s.State().Services {
			got = append(got, v.Name)
			if len(v.Addrs) != 2 || v.Annotations["a"] != "b" {
				t.Errorf("\n%s\n%s: %+v", tc.reason, name, v)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("\n%s\n%s: services: -want, +got:\n%s", tc.reason, name, diff)
		}
	}
	for _, v := range s.State().Services {
		if hosted := len(v.Hosts) == 1; hosted != (v.Name == "svc:web") {
			t.Errorf("%s has the hosts %+v", v.Name, v.Hosts)
		}
	}
}

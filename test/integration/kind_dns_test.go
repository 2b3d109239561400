// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"slices"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(dnsCase()) }

func dnsCase() kindCase[*v1alpha1.DNS] {
	// The tailnet's settings that the object names.
	type seen struct {
		Nameservers, SearchPaths []string
		Split                    tsclient.SplitDNSResponse
	}
	read := func(e *env, domains ...string) (seen, error) {
		d, ctx := e.tailnet.DNS(), e.Context()
		ns, err := d.Nameservers(ctx)
		if err != nil {
			return seen{}, err
		}
		sp, err := d.SearchPaths(ctx)
		if err != nil {
			return seen{}, err
		}
		all, err := d.SplitDNS(ctx)
		if err != nil {
			return seen{}, err
		}
		s := seen{Nameservers: ns, SearchPaths: sp, Split: tsclient.SplitDNSResponse{}}
		for domain, v := range all {
			if slices.Contains(domains, domain) {
				s.Split[domain] = v
			}
		}
		return s, nil
	}
	// The domains in New or Update.
	domains := []string{"corp.example", "lab.example"}
	const others = "others.example"
	return kindCase[*v1alpha1.DNS]{
		Kind: v1alpha1.DNSKind,
		New: func(*env) *v1alpha1.DNS {
			return &v1alpha1.DNS{Spec: v1alpha1.DNSSpec{ForProvider: v1alpha1.DNSParameters{
				Nameservers: &v1alpha1.DNSNameservers{Addresses: []string{"1.1.1.1"}},
				SearchPaths: &[]string{"corp.example"},
				SplitDNS:    []v1alpha1.SplitDNSDomain{{Domain: "corp.example", Nameservers: []string{"10.0.0.53"}}},
			}}}
		},
		Others: func(e *env) func() (any, error) {
			_, err := e.tailnet.DNS().UpdateSplitDNS(e.Context(), tsclient.SplitDNSRequest{others: {"10.9.9.53"}})
			e.must(err)
			// With MagicDNS on, the last nameservers are restored (TestMagicDNSStaysOn).
			e.must(e.tailnet.DNS().SetPreferences(e.Context(), tsclient.DNSPreferences{MagicDNS: false}))
			return func() (any, error) {
				s, err := read(e, others)
				return s.Split, err
			}
		},
		// The settings that the object names count as one, and those of other owners too: a
		// nameserver, a search path and a domain.
		Count: func(e *env) int {
			ours, err := read(e, domains...)
			e.must(err)
			theirs, err := read(e, others)
			e.must(err)
			n := len(theirs.Split)
			if len(ours.Nameservers)+len(ours.SearchPaths)+len(ours.Split) > 0 {
				n++
			}
			return n
		},
		Check: func(e *env, mg *v1alpha1.DNS) error {
			got, err := read(e, domains...)
			if err != nil {
				return err
			}
			p := mg.Spec.ForProvider
			want := seen{Nameservers: p.Nameservers.Addresses, SearchPaths: *p.SearchPaths, Split: tsclient.SplitDNSResponse{}}
			for _, s := range p.SplitDNS {
				want.Split[s.Domain] = s.Nameservers
			}
			return lifecycle.Differ(want, got)
		},
		Drift: func(e *env, _ *v1alpha1.DNS) {
			e.must(e.tailnet.DNS().SetNameservers(e.Context(), []string{"9.9.9.9"}))
			_, err := e.tailnet.DNS().UpdateSplitDNS(e.Context(), tsclient.SplitDNSRequest{"corp.example": nil})
			e.must(err)
		},
		Update: func(_ *env, mg *v1alpha1.DNS) {
			p := &mg.Spec.ForProvider
			p.Nameservers.Addresses, p.SearchPaths = []string{"1.1.1.1", "2606:4700:4700::1111"}, &[]string{"lab.example", "corp.example"}
			p.SplitDNS = []v1alpha1.SplitDNSDomain{{Domain: "lab.example", Nameservers: []string{"10.0.1.53"}}}
		},
		Foreign: func(e *env, _ *v1alpha1.DNS) string {
			d, ctx := e.tailnet.DNS(), e.Context()
			e.must(d.SetNameservers(ctx, []string{"8.8.8.8"}))
			e.must(d.SetSearchPaths(ctx, []string{"theirs.example"}))
			_, err := d.UpdateSplitDNS(ctx, tsclient.SplitDNSRequest{"corp.example": {"10.7.7.53"}})
			e.must(err)
			return ""
		},
		Adopt:   func(mg *v1alpha1.DNS, _ string) { mg.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt },
		Refused: "adoptionPolicy",
		Optional: map[string]string{
			"GET /api/v2/tailnet/{tailnet}/devices": "the tailnet's name is left out of the status then",
		},
		Skip: map[step]string{stepObserveNone: "a tailnet always has DNS settings"},
		Bad: []badInput[*v1alpha1.DNS]{
			{Name: "Nothing", Break: func(mg *v1alpha1.DNS) { mg.Spec.ForProvider = v1alpha1.DNSParameters{} }, Want: []string{"spec.forProvider", "at least one of nameservers"}},
			{Name: "NameserverIsNoAddress", Break: func(mg *v1alpha1.DNS) { mg.Spec.ForProvider.Nameservers.Addresses = []string{"dns.example"} }, Want: []string{"spec.forProvider.nameservers.addresses[0]", "must be an IP address"}},
			{Name: "SplitNameserverIsNoAddress", Break: func(mg *v1alpha1.DNS) { mg.Spec.ForProvider.SplitDNS[0].Nameservers = []string{"1.2.3"} }, Want: []string{"spec.forProvider.splitDNS[0].nameservers[0]", "must be an IP address"}},
			{Name: "NameserverSpelling", Break: func(mg *v1alpha1.DNS) { mg.Spec.ForProvider.Nameservers.Addresses = []string{"2606:4700:4700:0::1111"} }, Want: []string{"spec.forProvider.nameservers.addresses[0]", "lower-case"}},
			{Name: "DomainWithoutNameserver", Break: func(mg *v1alpha1.DNS) { mg.Spec.ForProvider.SplitDNS[0].Nameservers = []string{} }, Want: []string{"spec.forProvider.splitDNS[0].nameservers", "at least 1"}},
			{Name: "UpperCaseDomain", Break: func(mg *v1alpha1.DNS) { mg.Spec.ForProvider.SplitDNS[0].Domain = "Corp.example" }, Want: []string{"spec.forProvider.splitDNS[0].domain", "should match"}},
			{Name: "DomainTwice", Break: func(mg *v1alpha1.DNS) {
				mg.Spec.ForProvider.SplitDNS = append(mg.Spec.ForProvider.SplitDNS, mg.Spec.ForProvider.SplitDNS[0])
			}, Want: []string{"spec.forProvider.splitDNS", "Duplicate"}},
			{Name: "SearchPathIsNoDomain", Break: func(mg *v1alpha1.DNS) { mg.Spec.ForProvider.SearchPaths = &[]string{"a b"} }, Want: []string{"spec.forProvider.searchPaths[0]", "should match"}},
			{Name: "BadAdoptionPolicy", Break: func(mg *v1alpha1.DNS) { mg.Spec.ForProvider.AdoptionPolicy = "Steal" }, Want: []string{"spec.forProvider.adoptionPolicy", "Refuse"}},
		},
	}
}

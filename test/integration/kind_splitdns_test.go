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

func init() { addCase(splitDNSCase()) }

func splitDNSCase() kindCase[*v1alpha1.SplitDNS] {
	const (
		others = "others.example"
		theirs = "10.9.9.53"
	)
	c := lifecycle.SplitDNS(caseNames)
	domain := c.New().Spec.ForProvider.Domains[0]
	return kindCase[*v1alpha1.SplitDNS]{
		Kind:   v1alpha1.SplitDNSKind,
		Shared: c,
		// Another owner has a nameserver for the same domain, which stays the first, and is used with
		// exit nodes, too.
		Others: func(e *env) func() (any, error) {
			d := e.tailnet.DNS()
			e.must(d.SetNameservers(e.Context(), []string{"9.9.9.9"}))
			c, err := d.Configuration(e.Context())
			e.must(err)
			choice := []tsclient.DNSConfigurationResolver{{Address: theirs, UseWithExitNode: true}}
			c.SplitDNS = map[string][]tsclient.DNSConfigurationResolver{others: choice, domain: choice}
			e.must(d.SetConfiguration(e.Context(), *c))
			return func() (any, error) {
				c, err := d.Configuration(e.Context())
				if err != nil {
					return nil, err
				}
				return []any{c.Nameservers, c.SplitDNS[others], slices.Index(c.SplitDNS[domain], choice[0])}, nil
			}
		},
		// The domains of each owner. Other owners have one nameserver.
		Count: func(e *env) int {
			all, err := e.tailnet.DNS().SplitDNS(e.Context())
			e.must(err)
			n := 0
			for _, ns := range all {
				if slices.Contains(ns, theirs) {
					n++
				}
				if slices.ContainsFunc(ns, func(a string) bool { return a != theirs }) {
					n++
				}
			}
			return n
		},
		// The call that the shared Drift makes would drop the settings of the other owner's nameserver.
		Drift: func(e *env, mg *v1alpha1.SplitDNS) {
			c, err := e.tailnet.DNS().Configuration(e.Context())
			e.must(err)
			remaining := slices.DeleteFunc(slices.Clone(c.SplitDNS[domain]), func(r tsclient.DNSConfigurationResolver) bool {
				return slices.Contains(mg.Spec.ForProvider.Nameservers, r.Address)
			})
			// An empty list leaves out the domain.
			c.SplitDNS[domain] = remaining
			c.Preferences.MagicDNS = c.Preferences.MagicDNS && len(c.Nameservers) > 0
			e.must(e.tailnet.DNS().SetConfiguration(e.Context(), *c))
		},
		Optional: map[string]string{
			"GET /api/v2/tailnet/{tailnet}/devices": "the tailnet's name is left out of the status then",
		},
		Skip: map[step]string{
			stepRefuse:      "it adds to the nameservers of other owners",
			stepAdopt:       "it adopts nothing",
			stepObserveNone: "a tailnet always has DNS settings",
		},
		Bad: []badInput[*v1alpha1.SplitDNS]{
			{Name: "NameserverIsNoAddress", Break: func(mg *v1alpha1.SplitDNS) { mg.Spec.ForProvider.Nameservers = []string{"1.2.3"} }, Want: []string{"spec.forProvider.nameservers[0]", "must be an IP address"}},
			{Name: "NameserverSpelling", Break: func(mg *v1alpha1.SplitDNS) { mg.Spec.ForProvider.Nameservers = []string{"FD7A:0::53"} }, Want: []string{"spec.forProvider.nameservers[0]", "lower-case"}},
			{Name: "NoNameserver", Break: func(mg *v1alpha1.SplitDNS) { mg.Spec.ForProvider.Nameservers = []string{} }, Want: []string{"spec.forProvider.nameservers", "at least 1"}},
			{Name: "NoDomain", Break: func(mg *v1alpha1.SplitDNS) { mg.Spec.ForProvider.Domains = []string{} }, Want: []string{"spec.forProvider.domains", "at least 1"}},
			{Name: "UpperCaseDomain", Break: func(mg *v1alpha1.SplitDNS) { mg.Spec.ForProvider.Domains[0] = "Shop.example" }, Want: []string{"spec.forProvider.domains[0]", "should match"}},
			{Name: "DomainTwice", Break: func(mg *v1alpha1.SplitDNS) { mg.Spec.ForProvider.Domains = []string{domain, domain} }, Want: []string{"spec.forProvider.domains[1]", "Duplicate"}},
		},
	}
}

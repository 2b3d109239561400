// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"slices"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// SplitDNS returns the life of a SplitDNS object: domains that do not exist, with addresses for
// documentation, so that no server gets queries.
func SplitDNS(n Names) Case[*v1alpha1.SplitDNS] {
	first, second := []string{"192.0.2.53", "192.0.2.54"}, []string{"192.0.2.55", "2001:db8::53"}
	return Case[*v1alpha1.SplitDNS]{
		New: func() *v1alpha1.SplitDNS {
			return &v1alpha1.SplitDNS{Spec: v1alpha1.SplitDNSSpec{ForProvider: v1alpha1.SplitDNSParameters{
				Domains: []string{n.Prefix + "-shop.example.com"}, Nameservers: first,
			}}}
		},
		Update: func(mg *v1alpha1.SplitDNS) {
			mg.Spec.ForProvider = v1alpha1.SplitDNSParameters{Domains: []string{n.Prefix + "-lab.example.com"}, Nameservers: second}
		},
		// Others may have nameservers for the same domain, in any order.
		Check: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.SplitDNS) error {
			all, err := tailnet.DNS().SplitDNS(ctx)
			if err != nil {
				return err
			}
			current, want := tsclient.SplitDNSResponse{}, tsclient.SplitDNSResponse{}
			for domain, servers := range named(n.Prefix, all) {
				ours := slices.DeleteFunc(slices.Clone(servers), func(a string) bool { return !slices.Contains(slices.Concat(first, second), a) })
				if len(ours) > 0 {
					current[domain] = Texts(ours)
				}
			}
			for _, domain := range mg.Spec.ForProvider.Domains {
				want[domain] = Texts(mg.Spec.ForProvider.Nameservers)
			}
			return Differ(want, current)
		},
		Drift: func(ctx context.Context, tailnet *tsclient.Client, mg *v1alpha1.SplitDNS) error {
			all, err := tailnet.DNS().SplitDNS(ctx)
			if err != nil {
				return err
			}
			domain := mg.Spec.ForProvider.Domains[0]
			remaining := slices.DeleteFunc(slices.Clone(all[domain]), func(a string) bool { return a == mg.Spec.ForProvider.Nameservers[0] })
			if len(remaining) == 0 {
				return errors.Errorf("domain %s does not have the object's nameservers", domain)
			}
			_, err = tailnet.DNS().UpdateSplitDNS(ctx, tsclient.SplitDNSRequest{domain: remaining})
			return err
		},
	}
}

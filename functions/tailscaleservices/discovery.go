// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// wantsDiscovery reports whether services of the tailnet are listed. The number of results does not
// affect the service's readiness.
func wantsDiscovery(s *service) bool {
	return s.discovers() && s.succession.Tailnet != "" && (s.verdict.Accepted || s.discovery != nil)
}

// discovers reports whether services of the tailnet are listed.
func (f facts) discovers() bool { return f.spec.ServiceDiscovery != nil }

// composeDiscovery returns the Discovery that lists services of the tailnet.
func composeDiscovery(s *service) *tailnetv1alpha1.Discovery {
	d := s.spec.ServiceDiscovery
	l := s.labels()
	l[meta.LabelTailnet] = s.succession.Tailnet
	out := &tailnetv1alpha1.Discovery{
		ObjectMeta: metav1.ObjectMeta{
			Name:      names.Child(s.owner.Name, nameDiscovery),
			Namespace: s.owner.Namespace,
			Labels:    l,
		},
		Spec: tailnetv1alpha1.DiscoverySpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: compose.ProviderConfigRef(s.succession.Tailnet)},
			ForProvider: tailnetv1alpha1.DiscoveryParameters{
				Sources: []tailnetv1alpha1.DiscoverySource{tailnetv1alpha1.DiscoverServices},
				Include: d.Names,
				Exclude: d.ExcludeNames,
			},
		},
	}
	for _, t := range d.TagSelectors {
		out.Spec.ForProvider.TagSelectors = append(out.Spec.ForProvider.TagSelectors, tailnetv1alpha1.TagSelector{
			Operator: tailnetv1alpha1.TagSelectorOperator(t.Operator),
			Tag:      tailnetv1alpha1.Tag(t.Tag),
			Values:   compose.Tags(t.Values),
		})
	}
	return out
}

// discoveredServices returns the discovered services, by name.
func discoveredServices(s *service) []gatewayv1alpha1.DiscoveredService {
	if !s.discovers() || s.discovery == nil {
		return nil
	}
	var out []gatewayv1alpha1.DiscoveredService
	for _, d := range s.discovery.Status.AtProvider.Discovered {
		out = append(out, gatewayv1alpha1.DiscoveredService{
			Name: d.Name, DNSName: d.FQDN, Addresses: d.Addresses, Ports: d.Ports, Tags: d.Tags,
		})
	}
	slices.SortFunc(out, func(a, b gatewayv1alpha1.DiscoveredService) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b gatewayv1alpha1.DiscoveredService) bool { return a.Name == b.Name })
}

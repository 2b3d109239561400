// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// desired returns the service to write: the object's spec with the given ports, and, from the current
// service, which may be nil, its addresses, and the annotations and other fields that others keep there.
func desired(mg *v1alpha1.VIPService, current *tailscale.Service, owner, clusterID string, ports []v1alpha1.ServicePort) (tailscale.Service, error) {
	p := mg.Spec.ForProvider
	want := tailscale.Service{
		Name:        string(p.Name),
		DisplayName: p.DisplayName,
		Comment:     p.Comment,
		Annotations: map[string]string{},
		Ports:       tailscale.Sorted(ports),
		Tags:        tailscale.Sorted(p.Tags),
	}
	if current != nil {
		want.Addrs, want.Others = current.Addrs, current.Others
		maps.Copy(want.Annotations, current.Annotations)
		if registry.Shared(current) {
			// Clusters shared the service before; none does now.
			var err error
			if want.Annotations, err = registry.Released(current.Annotations, "", false); err != nil {
				return want, err
			}
		}
	}
	if err := registry.SetAnnotations(want.Annotations, p.Annotations); err != nil {
		return want, err
	}
	want.Annotations[meta.AnnotationOwner] = owner
	registry.SetRetain(want.Annotations, retains(mg))
	return want, registry.JoinOwners(want.Annotations, clusterID)
}

// diff returns the names of the fields in which a service differs from the wanted one. The API
// ignores order.
func diff(observed *tailscale.Service, want tailscale.Service) string {
	var fields []string
	if observed.DisplayName != want.DisplayName {
		fields = append(fields, "displayName")
	}
	if observed.Comment != want.Comment {
		fields = append(fields, "comment")
	}
	if !slices.Equal(tailscale.Sorted(observed.Ports), want.Ports) {
		fields = append(fields, fmt.Sprintf("ports %v -> %v", observed.Ports, want.Ports))
	}
	if !slices.Equal(tailscale.Sorted(observed.Tags), want.Tags) {
		fields = append(fields, fmt.Sprintf("tags %v -> %v", observed.Tags, want.Tags))
	}
	if !maps.Equal(observed.Annotations, want.Annotations) {
		fields = append(fields, "annotations")
	}
	return strings.Join(fields, ", ")
}

// sortAddresses puts IPv4 first. The API promises that order but need not keep it.
func sortAddresses(addresses []string) []string {
	out := slices.Clone(addresses)
	slices.SortStableFunc(out, func(a, b string) int { return family(a) - family(b) })
	return out
}

func family(a string) int {
	if ip, err := netip.ParseAddr(a); err == nil && ip.Is4() {
		return 4
	}
	return 6
}

// dnsName returns the DNS name of a service, or "" while the domain is unknown.
func dnsName(service, domain string) string {
	if domain == "" {
		return ""
	}
	return strings.TrimPrefix(service, "svc:") + "." + domain
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package discovery finds devices and services of a tailnet by name and tag. It is pure; the
// caller provides the lists.
package discovery

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// DefaultMaxResults is the default limit of listed results.
const DefaultMaxResults = 100

// Health of discovered devices and services.
const (
	HealthOnline  = "Online"
	HealthOffline = "Offline"

	// HealthUnknown is the health of services, because Tailscale's API lists hosts only per
	// service.
	HealthUnknown = "Unknown"
)

// A Tailnet holds the devices and services to search.
type Tailnet struct {
	Devices  []tailscale.Device
	Services []tailscale.Service

	// Domain of the tailnet. Empty if unknown.
	Domain string

	// Listed are the results of the last search. They stay while they match.
	Listed []v1alpha1.Discovered
}

// Looks reports whether a source is searched.
func Looks(p *v1alpha1.DiscoveryParameters, source v1alpha1.DiscoverySource) bool {
	return len(p.Sources) == 0 || slices.Contains(p.Sources, source)
}

// Find returns the matches by name, services first, cut to the limit, and their total number. Of
// those that were not listed before, services come first, because users can add any number of
// devices, and devices of one user leave places to others.
func Find(p *v1alpha1.DiscoveryParameters, t Tailnet) ([]v1alpha1.Discovered, int) {
	var out []v1alpha1.Discovered
	requests := map[string]quota.Request{}
	include, exclude := patterns(p.Include), patterns(p.Exclude)
	take := func(d v1alpha1.Discovered, r quota.Request) {
		names := []string{d.Name, strings.TrimPrefix(d.Name, "svc:"), d.FQDN}
		if include != nil && !anyMatch(include, names) || exclude != nil && anyMatch(exclude, names) {
			return
		}
		for _, s := range p.TagSelectors {
			if !selects(s, d.Tags) {
				return
			}
		}
		out = append(out, d)
		requests[key(d)] = r
	}
	if Looks(p, v1alpha1.DiscoverDevices) {
		for i := range t.Devices {
			if d := &t.Devices[i]; (d.ConnectedToControl || !p.OnlineOnly) && owned(d, p.Users) {
				take(device(d), requestOf(d))
			}
		}
	}
	if Looks(p, v1alpha1.DiscoverServices) && len(p.Users) == 0 {
		for i := range t.Services {
			take(service(&t.Services[i], t.Domain), quota.Request{})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.Discovered) int {
		return cmp.Or(cmp.Compare(b.Source, a.Source), cmp.Compare(a.Name, b.Name), cmp.Compare(a.NodeID, b.NodeID))
	})
	limit := int(p.MaxResults)
	if limit <= 0 {
		limit = DefaultMaxResults
	}
	for _, d := range t.Listed {
		if r, ok := requests[key(d)]; ok {
			r.Allocated = 1
			requests[key(d)] = r
		}
	}
	found, _ := quota.Admit(limit, out, func(d v1alpha1.Discovered) quota.Request { return requests[key(d)] })
	return found, len(out)
}

// key identifies a result: a device by its node, which may change its name.
func key(d v1alpha1.Discovered) string {
	return string(d.Source) + "/" + cmp.Or(d.NodeID, d.Name)
}

// requestOf returns the request of a device. Devices with tags have no owner.
func requestOf(d *tailscale.Device) quota.Request {
	r := quota.Request{Rank: 1, Created: d.Created.Time, UID: d.NodeID}
	if len(d.Tags) == 0 {
		r.Owner = d.User
	}
	return r
}

// owned reports whether one of the users owns the device. An empty list matches any owner.
func owned(d *tailscale.Device, users []string) bool {
	if len(users) == 0 {
		return true
	}
	return len(d.Tags) == 0 && slices.ContainsFunc(users, func(u string) bool { return strings.EqualFold(u, d.User) })
}

func device(d *tailscale.Device) v1alpha1.Discovered {
	fqdn := strings.TrimSuffix(d.Name, ".")
	name, _, _ := strings.Cut(fqdn, ".")
	out := v1alpha1.Discovered{
		Source: v1alpha1.DiscoverDevices, Name: name, FQDN: fqdn, NodeID: d.NodeID,
		Addresses: ipv4First(d.Addresses), Tags: slices.Sorted(slices.Values(d.Tags)), Health: HealthOnline,
	}
	if d.ConnectedToControl {
		return out
	}
	out.Health = HealthOffline
	if d.LastSeen != nil && !d.LastSeen.IsZero() {
		at := metav1.NewTime(d.LastSeen.Time).Rfc3339Copy()
		out.LastSeen = &at
	}
	return out
}

func service(s *tailscale.Service, domain string) v1alpha1.Discovered {
	out := v1alpha1.Discovered{
		Source: v1alpha1.DiscoverServices, Name: s.Name, Health: HealthUnknown,
		Addresses: ipv4First(s.Addrs), Ports: slices.Sorted(slices.Values(s.Ports)), Tags: slices.Sorted(slices.Values(s.Tags)),
	}
	if domain != "" {
		out.FQDN = strings.TrimPrefix(s.Name, "svc:") + "." + domain
	}
	return out
}

func ipv4First(addresses []string) []string {
	return slices.SortedFunc(slices.Values(addresses), func(a, b string) int {
		return cmp.Or(strings.Count(a, ":")-strings.Count(b, ":"), cmp.Compare(a, b))
	})
}

// selects reports whether tags meet a selector.
func selects(s v1alpha1.TagSelector, tags []string) bool {
	contains := func(t v1alpha1.Tag) bool { return slices.Contains(tags, string(t)) }
	switch s.Operator {
	case v1alpha1.TagSelectorIn:
		return slices.ContainsFunc(s.Values, contains)
	case v1alpha1.TagSelectorNotIn:
		return !slices.ContainsFunc(s.Values, contains)
	case v1alpha1.TagSelectorExists:
		return contains(s.Tag)
	case v1alpha1.TagSelectorDoesNotExist:
		return !contains(s.Tag)
	}
	return false
}

// patterns returns one case-insensitive expression for all patterns, or nil without patterns.
func patterns(globs []string) *regexp.Regexp {
	if len(globs) == 0 {
		return nil
	}
	parts := make([]string, 0, len(globs))
	for _, g := range globs {
		q := strings.ReplaceAll(regexp.QuoteMeta(g), `\*`, `.*`)
		parts = append(parts, strings.ReplaceAll(q, `\?`, `.`))
	}
	// Quoted text always compiles.
	return regexp.MustCompile(`(?is)^(?:` + strings.Join(parts, "|") + `)$`)
}

func anyMatch(re *regexp.Regexp, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && re.MatchString(n) })
}

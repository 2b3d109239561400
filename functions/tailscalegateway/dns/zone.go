// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/services"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// A summary is what a report says of the hostnames of routes, for all tailnets.
type summary struct {
	// hostnames are those of routes, by their service's target.
	hostnames map[string][]string

	requests map[string]quota.Request
}

// read returns what a report says, which may be nil.
func read(report *tailnetv1alpha1.GatewayReportSpec) summary {
	out := summary{hostnames: map[string][]string{}, requests: routes.HostnameRequests(report)}
	if report != nil {
		for _, r := range report.Routes {
			out.hostnames[routes.Target(r)] = r.Hostnames
		}
	}
	return out
}

// hostnames returns the hostnames that a tailnet should resolve, and the services that answer for
// each.
func hostnames(f Facts, t *tailnets.Tailnet, byTarget map[string][]string) map[string][]*services.Service {
	out := map[string][]*services.Service{}
	add := func(v *services.Service, hosts ...string) {
		for _, h := range hosts {
			if h = strings.ToLower(h); h != "" && h != anyHost && !strings.HasSuffix(h, suffixTailnet) {
				out[h] = append(out[h], v)
			}
		}
	}
	for _, v := range f.Services {
		switch {
		case v.Tailnet != t || !v.Wanted():
		case v.IsGateway():
			add(v, gatewayHosts(f, t)...)
		default:
			add(v, byTarget[v.Target]...)
		}
	}
	return out
}

// gatewayHosts returns the hostnames for which the Gateway's own service answers: those of routes,
// and of listeners. A listener's wildcard does not count if its routes are known.
func gatewayHosts(f Facts, t *tailnets.Tailnet) []string {
	var out []string
	shared := func(port int32) bool {
		return slices.ContainsFunc(t.Shared, func(l tailnets.Listener) bool { return l.Port == port })
	}
	if f.Gateway.Found != nil {
		for _, l := range f.Gateway.Found.Listeners {
			if shared(l.Port) && (f.Report == nil || !zone.IsWildcard(l.Hostname)) {
				out = append(out, l.Hostname)
			}
		}
	}
	if f.Report == nil {
		return out
	}
	for _, r := range f.Report.Routes {
		if slices.ContainsFunc(r.Ports, shared) {
			out = append(out, r.Hostnames...)
		}
	}
	for _, g := range f.Report.GeneratedRoutes {
		if g.Tailnet == t.Name && g.Direction == tailnetv1alpha1.DirectionIngress && g.Name != "" {
			out = append(out, g.Hostname)
		}
	}
	return out
}

// plan sets the zone. A hostname is in it once its service has an address.
func (v *Zone) plan(hosts map[string][]*services.Service, requests map[string]quota.Request) {
	var domains []string
	for i, d := range v.Tailnet.SplitDNS.Domains {
		if v.granted(fmt.Sprintf("splitDNS.domains[%d]", i), string(d)) {
			domains = append(domains, string(d))
		}
	}
	for _, h := range slices.Sorted(maps.Keys(hosts)) {
		addresses := addressesOf(hosts[h])
		switch {
		case len(v.Tailnet.SplitDNS.Domains) > 0:
			if !slices.ContainsFunc(domains, func(d string) bool { return zone.Covers(d, h) }) {
				v.uncovered = append(v.uncovered, h)
				continue
			}
		case zone.IsWildcard(h):
			v.uncovered = append(v.uncovered, h)
			continue
		case !v.granted("hostname "+h, h):
			continue
		case len(addresses) > 0:
			domains = append(domains, h)
		}
		if len(addresses) == 0 {
			v.waiting = true
			continue
		}
		v.zone.Names = append(v.zone.Names, zone.Name{Name: h, Addresses: addresses})
	}
	slices.Sort(domains)
	previous := v.observedZone()
	domains = v.limit(domains, requests, previous)
	shared := v.sharedDomains(previous)
	for _, d := range domains {
		v.zone.Domains = append(v.zone.Domains, zone.Domain{Name: d, Shared: shared[d]})
	}
}

// granted reports whether the tailnet may send queries for a domain to the proxies, independent of
// the object that names the domain: the author of a route chooses its hostnames.
func (v *Zone) granted(field, domain string) bool {
	beyond := v.Tailnet.Verdict.Grant.Resolves(field, domain)
	if v.beyond == nil {
		v.beyond = beyond
	}
	return beyond == nil
}

// addressesOf returns the addresses of the service with the most ports: all services lead to the
// same Gateway.
func addressesOf(answering []*services.Service) []netip.Addr {
	var best *services.Service
	for _, v := range answering {
		if v.Observed == nil || v.Observed.Status.VIPServiceStatus == nil || len(v.Observed.Status.VIPServiceStatus.Addresses) == 0 {
			continue
		}
		if best == nil || len(v.Backends) > len(best.Backends) {
			best = v
		}
	}
	if best == nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range best.Observed.Status.VIPServiceStatus.Addresses {
		if ip, err := netip.ParseAddr(a); err == nil {
			out = append(out, ip)
		}
	}
	return out
}

// sharedDomains returns the domains for which other nameservers also answer: those of another
// Gateway, or of another cluster. While the SplitDNS changes, its status may contain this Gateway's
// earlier nameservers, and the observed zone says it.
func (v *Zone) sharedDomains(previous zone.Zone) map[string]bool {
	out := map[string]bool{}
	if v.split == nil {
		return out
	}
	c := v.split.GetCondition(xpv2.TypeSynced)
	if c.Status != corev1.ConditionTrue || c.ObservedGeneration != v.split.GetGeneration() {
		for _, d := range previous.Domains {
			out[d.Name] = d.Shared
		}
		return out
	}
	for _, d := range v.split.Status.AtProvider.Domains {
		out[d.Domain] = slices.ContainsFunc(d.Nameservers, func(a string) bool {
			return !slices.Contains(v.split.Spec.ForProvider.Nameservers, a)
		})
	}
	return out
}

// observedZone returns the zone in the observed ConfigMap. It is empty if there is none that can
// be decoded.
func (v *Zone) observedZone() zone.Zone {
	if v.config == nil {
		return zone.Zone{}
	}
	z, err := zone.Decode(v.config.Data[zone.ConfigMapKey])
	if err != nil {
		return zone.Zone{}
	}
	return z
}

// limit returns the domains within the maximum, and limits the zone's names. The ones that the
// observed zone has stay.
func (v *Zone) limit(domains []string, requests map[string]quota.Request, previous zone.Zone) []string {
	resolved, existing := map[string]int{}, map[string]int{}
	for _, n := range previous.Names {
		resolved[n.Name] = 1
	}
	for _, d := range previous.Domains {
		existing[d.Name] = 1
	}
	names, omitted := quota.Admit(maxNames, v.zone.Names, func(n zone.Name) quota.Request {
		request := requests[n.Name]
		request.Allocated = resolved[n.Name]
		return request
	})
	v.zone.Names, v.full = names, omitted > 0
	domains, omitted = quota.Admit(maxDomains, domains, func(d string) quota.Request {
		request := requests[d]
		request.Allocated = existing[d]
		return request
	})
	v.full = v.full || omitted > 0
	return domains
}

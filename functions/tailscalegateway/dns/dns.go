// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package dns plans what the tailnets of a Gateway resolve: for each a zone that its ingress proxies
// serve, and a SplitDNS by which the tailnet asks them.
package dns

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/services"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// PrefixZone and PrefixSplitDNS start the resource names of a zone's ConfigMap and of the SplitDNS. The
// name of a tailnet follows.
const (
	PrefixZone     = "zone-"
	PrefixSplitDNS = "splitdns-"
)

const (
	// maxDomains is the maximum number of domains of a SplitDNS.
	maxDomains = 256

	// maxNames is the maximum number of names of a zone that fits into a ConfigMap.
	maxNames = 4096

	// maxNameservers is the maximum number of nameservers: devices query all of them at the same
	// time.
	maxNameservers = 8

	// anyHost is the host of a generated route without hostnames in a report.
	anyHost = "*"

	// suffixTailnet ends names that tailnets resolve by themselves.
	suffixTailnet = ".ts.net"
)

// Facts are what the zones follow from.
type Facts struct {
	Owner compose.Owner

	// Step means that nothing reports of routes: the Gateway is that of a step of a pipeline.
	Step bool

	Gateway *front.Gateway

	// Report is the extension's report, or nil if there is none.
	Report *tailnetv1alpha1.GatewayReportSpec

	Tailnets []*tailnets.Tailnet
	Services []*services.Service

	// ConfigMaps are the observed zones, and Splits the observed SplitDNS, by resource name.
	ConfigMaps map[string]*corev1.ConfigMap
	Splits     map[string]*tailnetv1alpha1.SplitDNS
}

// A Plan is what the tailnets of a TailscaleGateway resolve.
type Plan struct {
	Facts

	// Zones are those of tailnets that resolve hostnames.
	Zones []*Zone
}

// A Zone holds the names of a Gateway that one tailnet resolves.
type Zone struct {
	Tailnet *tailnets.Tailnet

	// name is the name of the ConfigMap and of the SplitDNS.
	name string

	// zone is the zone that the proxies serve.
	zone zone.Zone

	// nameservers are the proxies' addresses in the tailnet, as far as they are known.
	nameservers []string

	// unknown means that the names to resolve are unknown: the observed zone stays.
	unknown bool

	// uncovered are hostnames that cannot be resolved because no domain contains them.
	uncovered []string

	// beyond is the first domain that neither the tailnet nor the namespace's grant lists. It is nil
	// if there is none.
	beyond *allow.ViolationError

	// full means that there are more domains or names than the maximum.
	full bool

	// waiting means that a hostname has no address yet.
	waiting bool

	// config and split are the observed ConfigMap and SplitDNS. They are nil if there are none.
	config *corev1.ConfigMap
	split  *tailnetv1alpha1.SplitDNS
}

// New returns the zones of tailnets that resolve hostnames. A Gateway that may not be shared has
// none.
func New(f Facts) Plan {
	out := Plan{Facts: f}
	if !f.Gateway.Permitted() {
		return out
	}
	resolving := slices.DeleteFunc(slices.Clone(f.Tailnets), func(t *tailnets.Tailnet) bool { return t.SplitDNS == nil || t.Ingress == nil })
	if len(resolving) == 0 {
		return out
	}
	s := read(f.Report)
	for _, t := range resolving {
		out.Zones = append(out.Zones, newZone(f, t, s))
	}
	return out
}

// newZone returns the zone of a tailnet.
func newZone(f Facts, t *tailnets.Tailnet, s summary) *Zone {
	v := &Zone{
		Tailnet: t, name: t.ZoneName(f.Owner), nameservers: nameservers(t.Ingress),
		// If the tailnet does not allow the namespace, or does not exist, another condition reports
		// this.
		unknown: f.Gateway.Found == nil || f.Report == nil && !f.Step || t.Verdict.Grant == nil,
		config:  f.ConfigMaps[PrefixZone+t.Name], split: f.Splits[PrefixSplitDNS+t.Name],
	}
	if !v.unknown {
		v.plan(hostnames(f, t, s.hostnames), s.requests)
	}
	return v
}

// nameservers returns the first address of each device, which is IPv4. Online devices take
// precedence only where there are more devices than nameservers: clients take the first answer
// of any, and each change is a write.
func nameservers(p *tailnets.Proxies) []string {
	if p.Observed == nil || p.Moving() {
		return nil
	}
	var online, offline []string
	for _, d := range p.Observed.Status.Devices {
		a := d.TailscaleIP
		if len(d.Addresses) > 0 {
			a = cmp.Or(a, d.Addresses[0])
		}
		switch {
		case a == "":
		case d.Online || len(p.Observed.Status.Devices) <= maxNameservers:
			online = append(online, a)
		default:
			offline = append(offline, a)
		}
	}
	out := slices.Concat(online, offline)
	out = out[:min(len(out), maxNameservers)]
	slices.Sort(out)
	return slices.Compact(out)
}

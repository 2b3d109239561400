// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

const (
	// prefixZone and prefixSplitDNS start the resource names of a zone's ConfigMap and
	// of the SplitDNS. The name of a tailnet follows.
	prefixZone     = "zone-"
	prefixSplitDNS = "splitdns-"

	// suffixDNS ends the names of both.
	suffixDNS = "dns"

	// maxDomains is the maximum number of domains of a SplitDNS.
	maxDomains = 256

	// maxNames is the maximum number of names of a zone that fits into a ConfigMap.
	maxNames = 4096

	// maxNameservers is the maximum number of nameservers: devices query all of them at the same
	// time.
	maxNameservers = 8

	// suffixTailnet ends names that tailnets resolve by themselves.
	suffixTailnet = ".ts.net"
)

// A tailnetZone holds the names of a Gateway that one tailnet resolves.
type tailnetZone struct {
	tailnet *tailnet

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

// resolves reports whether any tailnet should resolve hostnames. Without ingress they have no
// addresses.
func (gp *gatewayPlan) resolves() bool {
	return gp.ingress() && slices.ContainsFunc(gp.tailnets, func(t *tailnet) bool { return t.SplitDNS != nil })
}

// planZones returns the zones of tailnets that resolve hostnames.
func planZones(gp *gatewayPlan) []*tailnetZone {
	if !gp.permitted() {
		return nil
	}
	var out []*tailnetZone
	for _, t := range gp.tailnets {
		if t.SplitDNS != nil && t.ingress != nil {
			out = append(out, newZone(gp, t))
		}
	}
	return out
}

// newZone returns the tailnetZone of a tailnet.
func newZone(gp *gatewayPlan, t *tailnet) *tailnetZone {
	v := &tailnetZone{
		tailnet: t, name: gp.zoneName(t), nameservers: t.ingress.nameservers(),
		// If the tailnet does not allow the namespace, or does not exist, another condition reports
		// this.
		unknown: gp.found == nil || gp.report == nil && !gp.step || t.verdict.Grant == nil,
		config:  gp.observed.zones[prefixZone+t.Name], split: gp.observed.splits[prefixSplitDNS+t.Name],
	}
	if !v.unknown {
		v.plan(hostnames(gp, t), gp.hostnameRequests())
	}
	return v
}

// zoneName returns the name of a tailnet's ConfigMap and SplitDNS.
func (gp *gatewayPlan) zoneName(t *tailnet) string {
	return names.Child(gp.owner.Name, t.Name, suffixDNS)
}

// zoneKey returns the resource name of the ConfigMap.
func (v *tailnetZone) zoneKey() string { return prefixZone + v.tailnet.Name }

// splitKey returns the resource name of the SplitDNS.
func (v *tailnetZone) splitKey() string { return prefixSplitDNS + v.tailnet.Name }

// nameservers returns the first address of each device, which is IPv4. Online devices take
// precedence only where there are more devices than nameservers: clients take the first answer
// of any, and each change is a write.
func (p *proxies) nameservers() []string {
	if p.observed == nil || p.moving() {
		return nil
	}
	var online, offline []string
	for _, d := range p.observed.Status.Devices {
		a := d.TailscaleIP
		if len(d.Addresses) > 0 {
			a = cmp.Or(a, d.Addresses[0])
		}
		switch {
		case a == "":
		case d.Online || len(p.observed.Status.Devices) <= maxNameservers:
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

// hostnames returns the hostnames that a tailnet should resolve, and the services that answer for
// each.
func hostnames(gp *gatewayPlan, t *tailnet) map[string][]*service {
	out := map[string][]*service{}
	add := func(v *service, hosts ...string) {
		for _, h := range hosts {
			if h = strings.ToLower(h); h != "" && h != anyHost && !strings.HasSuffix(h, suffixTailnet) {
				out[h] = append(out[h], v)
			}
		}
	}
	routes := map[string][]string{}
	if gp.report != nil {
		for _, r := range gp.report.Routes {
			routes[routeTarget(r)] = r.Hostnames
		}
	}
	for _, v := range gp.services {
		switch {
		case v.tailnet != t || !v.wanted():
		case v.isGateway():
			add(v, gatewayHosts(gp, t)...)
		default:
			add(v, routes[v.target]...)
		}
	}
	return out
}

// gatewayHosts returns the hostnames for which the Gateway's own service answers: those of routes,
// and of listeners. A listener's wildcard does not count if its routes are known.
func gatewayHosts(gp *gatewayPlan, t *tailnet) []string {
	var out []string
	shared := func(port int32) bool {
		return slices.ContainsFunc(t.shared, func(l sharedListener) bool { return l.port == port })
	}
	if gp.found != nil {
		for _, l := range gp.found.Listeners {
			if shared(l.Port) && (gp.report == nil || !zone.IsWildcard(l.Hostname)) {
				out = append(out, l.Hostname)
			}
		}
	}
	if gp.report == nil {
		return out
	}
	for _, r := range gp.report.Routes {
		if slices.ContainsFunc(r.Ports, shared) {
			out = append(out, r.Hostnames...)
		}
	}
	for _, g := range gp.report.GeneratedRoutes {
		if g.Tailnet == t.Name && g.Direction == tailnetv1alpha1.DirectionIngress && g.Name != "" {
			out = append(out, g.Hostname)
		}
	}
	return out
}

// plan sets the zone. A hostname is in it once its service has an address.
func (v *tailnetZone) plan(hosts map[string][]*service, requests map[string]quota.Request) {
	var domains []string
	for i, d := range v.tailnet.SplitDNS.Domains {
		if v.granted(fmt.Sprintf("splitDNS.domains[%d]", i), string(d)) {
			domains = append(domains, string(d))
		}
	}
	for _, h := range slices.Sorted(maps.Keys(hosts)) {
		addresses := addressesOf(hosts[h])
		switch {
		case len(v.tailnet.SplitDNS.Domains) > 0:
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
	domains = v.limit(domains, requests)
	shared := v.sharedDomains()
	for _, d := range domains {
		v.zone.Domains = append(v.zone.Domains, zone.Domain{Name: d, Shared: shared[d]})
	}
}

// granted reports whether the tailnet may send queries for a domain to the proxies, independent of
// the object that names the domain: the author of a route chooses its hostnames.
func (v *tailnetZone) granted(field, domain string) bool {
	beyond := v.tailnet.verdict.Grant.Resolves(field, domain)
	if v.beyond == nil {
		v.beyond = beyond
	}
	return beyond == nil
}

// addressesOf returns the addresses of the service with the most ports: all services lead to the
// same Gateway.
func addressesOf(services []*service) []netip.Addr {
	var best *service
	for _, v := range services {
		if v.observed == nil || v.observed.Status.VIPServiceStatus == nil || len(v.observed.Status.VIPServiceStatus.Addresses) == 0 {
			continue
		}
		if best == nil || len(v.backends) > len(best.backends) {
			best = v
		}
	}
	if best == nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range best.observed.Status.VIPServiceStatus.Addresses {
		if ip, err := netip.ParseAddr(a); err == nil {
			out = append(out, ip)
		}
	}
	return out
}

// sharedDomains returns the domains for which other nameservers also answer: those of another
// Gateway, or of another cluster. While the SplitDNS changes, its status may contain this Gateway's
// earlier nameservers.
func (v *tailnetZone) sharedDomains() map[string]bool {
	out := map[string]bool{}
	if v.split == nil {
		return out
	}
	c := v.split.GetCondition(xpv2.TypeSynced)
	if c.Status != corev1.ConditionTrue || c.ObservedGeneration != v.split.GetGeneration() {
		for _, d := range v.observedZone().Domains {
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
func (v *tailnetZone) observedZone() zone.Zone {
	if v.config == nil {
		return zone.Zone{}
	}
	z, err := zone.Decode(v.config.Data[zone.ConfigMapKey])
	if err != nil {
		return zone.Zone{}
	}
	return z
}

// ready reports whether the tailnet has the domains.
func (v *tailnetZone) ready() bool {
	return v.split != nil && resource.IsConditionTrue(v.split.GetCondition(xpv2.TypeReady))
}

// settled reports whether no more changes are expected. Without hostnames the tailnet needs no
// SplitDNS.
func (v *tailnetZone) settled() bool {
	return v.ready() || !v.unknown && !v.waiting && len(v.zone.Domains) == 0
}

// problem returns the problem that the user has to fix, or an empty string.
func (v *tailnetZone) problem() string {
	if v.split == nil {
		return ""
	}
	for _, t := range []xpv2.ConditionType{xpv2.TypeReady, xpv2.TypeSynced} {
		if c := v.split.GetCondition(t); c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// zoneChildren returns what resolves hostnames. The tailnet learns of the proxies once they
// exist, and once they have something to answer.
func zoneChildren(gp *gatewayPlan) (children, error) {
	var out children
	for _, v := range gp.zones {
		c, err := composeZone(gp, v)
		if err != nil {
			return out, err
		}
		out.add(v.zoneKey(), c, true)
		if !v.settled() {
			out.incomplete, out.requeue = true, true
		}
		if d := composeSplitDNS(gp, v); d != nil {
			out.add(v.splitKey(), d, v.ready())
		}
	}
	return out, nil
}

// composeZone returns the ConfigMap with the zone.
func composeZone(gp *gatewayPlan, v *tailnetZone) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v.name, Namespace: gp.owner.Namespace, Labels: gp.labels(v.tailnet)}}
	if v.unknown && v.config != nil {
		c.Data = v.config.Data
		return c, nil
	}
	z, err := v.zone.Encode()
	c.Data = map[string]string{zone.ConfigMapKey: z}
	return c, err
}

// composeSplitDNS returns the SplitDNS. It returns nil while there is nothing to configure in
// the tailnet.
func composeSplitDNS(gp *gatewayPlan, v *tailnetZone) *tailnetv1alpha1.SplitDNS {
	d := &tailnetv1alpha1.SplitDNS{ObjectMeta: metav1.ObjectMeta{Name: v.name, Namespace: gp.owner.Namespace, Labels: gp.labels(v.tailnet)}}
	// An annotation records what the object has added to the tailnet.
	metav1.SetMetaDataLabel(&d.ObjectMeta, meta.LabelBackup, "true")
	d.SetProviderConfigReference(compose.ProviderConfigRef(v.tailnet.ref))
	if v.split != nil {
		d.Spec.ForProvider = v.split.Spec.ForProvider
	}
	if len(v.nameservers) > 0 {
		d.Spec.ForProvider.Nameservers = v.nameservers
	}
	if !v.unknown && (v.split != nil || len(v.zone.Names) > 0 || !v.waiting) {
		d.Spec.ForProvider.Domains = v.domains()
	}
	if len(d.Spec.ForProvider.Domains) == 0 || len(d.Spec.ForProvider.Nameservers) == 0 {
		return nil
	}
	return d
}

// domains returns the names of the zone's domains.
func (v *tailnetZone) domains() []string {
	out := make([]string, len(v.zone.Domains))
	for i, d := range v.zone.Domains {
		out[i] = d.Name
	}
	return out
}

// status returns what is resolved, for the status. It returns nil until the tailnet is
// configured.
func (v *tailnetZone) status() *gatewayv1alpha1.GatewaySplitDNSStatus {
	if !v.ready() {
		return nil
	}
	p := v.split.Spec.ForProvider
	return &gatewayv1alpha1.GatewaySplitDNSStatus{Domains: p.Domains, Nameservers: p.Nameservers}
}

// splitDNSReady returns the condition SplitDNSReady: True if all hostnames resolve. Problems that
// the user must fix come before those that only need time.
func splitDNSReady(gp *gatewayPlan) compose.Condition {
	c := compose.Condition{Status: compose.False}
	for _, v := range gp.zones {
		if m := v.problem(); m != "" {
			c.Reason, c.Message = meta.ReasonSplitDNSError, fmt.Sprintf("SplitDNS %s: %s", v.name, m)
			return c
		}
	}
	for _, v := range gp.zones {
		if v.beyond != nil {
			c.Reason, c.Message = meta.ReasonNotGranted, fmt.Sprintf("Tailnet %q: %v", v.tailnet.ref, v.beyond)
			return c
		}
		if v.full {
			c.Reason = meta.ReasonTooManyHostnames
			c.Message = fmt.Sprintf("More than %d domains or %d hostnames in tailnet %q; name parent domains in splitDNS.domains, or split the routes over several Gateways", maxDomains, maxNames, v.tailnet.ref)
			return c
		}
		if len(v.uncovered) > 0 {
			c.Reason, c.Message = meta.ReasonHostnamesNotCovered, v.notCovered()
			return c
		}
	}
	if gp.omitted() != (tailnetv1alpha1.ReportedOmissions{}) {
		c.Reason, c.Message = meta.ReasonTooManyHostnames, tooManyRoutes(gp)
		return c
	}
	for _, v := range gp.zones {
		if !v.settled() {
			c.Reason, c.Message = meta.ReasonSplitDNSCreating, "Waiting for proxies that answer, and for Tailscale to send devices to them"
			return c
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonHostnamesResolve, Message: "Devices of the tailnets ask proxies for all hostnames"}
}

// notCovered returns a message with the first hostname that cannot be resolved, and the number
// of the others.
func (v *tailnetZone) notCovered() string {
	h := v.uncovered[0]
	m := fmt.Sprintf("%s does not resolve in tailnet %q: name its domain in splitDNS.domains", h, v.tailnet.ref)
	if len(v.tailnet.SplitDNS.Domains) == 0 {
		m = fmt.Sprintf("%s does not resolve in tailnet %q: a wildcard needs its parent domain in splitDNS.domains, with which the tailnet asks the proxies for all names below", h, v.tailnet.ref)
	}
	if n := len(v.uncovered) - 1; n > 0 {
		m += fmt.Sprintf(" (and %d more)", n)
	}
	return m
}

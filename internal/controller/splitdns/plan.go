// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package splitdns

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/contention"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/record"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// annotationRecord holds the nameservers that a SplitDNS object has added, by domain.
const annotationRecord record.Annotation = "tailnet.gateway.tailscale.com/splitdns-record"

// servers are nameservers by domain.
type servers map[string][]string

// readRecord returns the nameservers that an object has added.
func readRecord(o metav1.Object) (servers, error) {
	r := servers{}
	return r, annotationRecord.Read(o, &r)
}

// facts returns the nameservers that an object has added, and, unless it is being deleted, those that
// it wants, each with its domain.
func facts(mg *v1alpha1.SplitDNS) ([]string, error) {
	all, err := readRecord(mg)
	if err != nil {
		return nil, err
	}
	if !xpmeta.WasDeleted(mg) {
		for d, as := range wantedServers(mg.Spec.ForProvider) {
			all[d] = append(all[d], as...)
		}
	}
	var out []string
	for d, as := range all {
		for _, a := range as {
			out = append(out, d+" "+a)
		}
	}
	return out, nil
}

// A situation holds all inputs of a plan.
type situation struct {
	// wanted is empty for an object that is being deleted.
	wanted  servers
	current servers

	// record holds the nameservers that the object has added.
	record servers

	// siblings are other objects of the cluster for the same tailnet.
	siblings []sibling

	// lost are domains that DNS objects name.
	lost map[string]contention.Contender
}

// A sibling is another object for the same tailnet.
type sibling struct {
	// object is nil if its record is not valid.
	object *v1alpha1.SplitDNS

	// wanted is empty for an object that writes nothing or is being deleted.
	wanted servers

	// record holds the nameservers that it has added.
	record servers
}

// A plan describes the changes for an object.
type plan struct {
	// set holds all nameservers of the domains to write, including those of others.
	set servers

	// intent and result are the records to save before and after the write.
	intent, result servers

	current servers
	lost    map[string]contention.Contender

	// handOver are siblings that want nameservers which the object leaves, with their new records.
	handOver []sibling
}

// decide returns the plan for a situation. It keeps the nameservers that others have set for a
// domain, and their order.
func decide(s situation) plan {
	p := plan{set: servers{}, intent: servers{}, result: servers{}, current: s.record, lost: map[string]contention.Contender{}}
	domains := maps.Clone(s.record)
	if domains == nil {
		domains = servers{}
	}
	maps.Copy(domains, s.wanted)
	for d := range domains {
		want := s.wanted[d]
		if holder, ok := s.lost[d]; ok && len(want) > 0 {
			p.lost[d] = holder
			want = nil
		}
		s.planDomain(&p, d, want)
	}
	for _, o := range s.siblings {
		if r, ok := s.handOverRecord(o, p.result); ok {
			o.record = r
			p.handOver = append(p.handOver, o)
		}
	}
	return p
}

// handOverRecord returns the record of a sibling together with the nameservers that the object has
// added, no longer wants, and leaves because the sibling wants them. It also returns whether the
// record has changed.
func (s situation) handOverRecord(o sibling, result servers) (servers, bool) {
	if o.object == nil {
		return nil, false
	}
	r := servers{}
	for d, as := range o.record {
		r[d] = slices.Clone(as)
	}
	more := false
	for d, as := range s.record {
		for _, a := range as {
			if slices.Contains(result[d], a) || !slices.Contains(s.current[d], a) || !slices.Contains(o.wanted[d], a) || slices.Contains(r[d], a) {
				continue
			}
			r[d], more = append(r[d], a), true
		}
	}
	return r, more
}

func (s situation) planDomain(p *plan, domain string, want []string) {
	current, recorded := s.current[domain], s.record[domain]
	next := slices.DeleteFunc(slices.Clone(current), func(a string) bool {
		return slices.Contains(recorded, a) && !slices.Contains(want, a) && !s.otherWants(domain, a)
	})
	var ours []string
	for _, a := range want {
		missing := !slices.Contains(next, a)
		if missing {
			next = append(next, a)
		}
		// A nameserver that another client has set remains when the object is deleted.
		if missing || slices.Contains(recorded, a) || s.otherAdded(domain, a) {
			ours = append(ours, a)
		}
	}
	if len(ours) > 0 {
		p.result[domain] = ours
	}
	if !slices.Equal(current, next) {
		p.set[domain] = next
	}
	intent := ours
	if _, writes := p.set[domain]; writes {
		// After a crash during the write, either may be in the tailnet.
		intent = canonical(append(slices.Clone(ours), recorded...))
	}
	if len(intent) > 0 {
		p.intent[domain] = intent
	}
}

// otherWants reports whether another object wants an address for a domain.
func (s situation) otherWants(domain, address string) bool {
	return slices.ContainsFunc(s.siblings, func(o sibling) bool { return slices.Contains(o.wanted[domain], address) })
}

// otherAdded reports whether another object has added an address to a domain.
func (s situation) otherAdded(domain, address string) bool {
	return slices.ContainsFunc(s.siblings, func(o sibling) bool { return slices.Contains(o.record[domain], address) })
}

// wantedServers returns the nameservers of an object's spec.
func wantedServers(p v1alpha1.SplitDNSParameters) servers {
	out := servers{}
	for _, d := range p.Domains {
		out[d] = canonical(p.Nameservers)
	}
	return out
}

// currentServers returns the nameservers of a tailnet.
func currentServers(nameservers map[string][]string) servers {
	out := servers{}
	for d, ns := range nameservers {
		out[d] = canonical(ns)
	}
	return out
}

// canonical returns addresses in the form of netip without duplicates, because an IPv6 address has
// several spellings.
func canonical(addresses []string) []string {
	var out []string
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a); err == nil {
			a = ip.String()
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// done reports whether there are no more changes.
func (p plan) done() bool {
	return len(p.set) == 0 && (len(p.result) == 0 && len(p.current) == 0 || reflect.DeepEqual(p.result, p.current))
}

// diff returns the names of the domains to write.
func (p plan) diff() string {
	var out []string
	for _, d := range slices.Sorted(maps.Keys(p.set)) {
		out = append(out, fmt.Sprintf("%s: want %v", d, p.set[d]))
	}
	return strings.Join(out, "; ")
}

// ready returns the Ready condition of an object without further changes.
func (p plan) ready() xpv2.Condition {
	if m := contention.Message(v1alpha1.DNSKind, p.lost); m != "" {
		return contention.NotReady(meta.ReasonConflict, m)
	}
	return xpv2.Available()
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package nameserver

import (
	"net"
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

const (
	// ttl is the TTL of addresses, in seconds. They are addresses of Tailscale Services, which
	// seldom change.
	ttl = 30

	// negativeTTL is how long clients may cache that a name has no records: its route can be about
	// to be created.
	negativeTTL = 5

	// maxUDP is the size in bytes that passes every link unfragmented (dnsflagday.net/2020).
	maxUDP = 1232
)

// answer returns the answer to a question. t can be nil while the zone is not known.
func answer(t *zone.Table, q *dns.Msg) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(q)
	if o := q.IsEdns0(); o != nil {
		m.SetEdns0(maxUDP, false)
		if o.Version() != 0 {
			m.Rcode = dns.RcodeBadVers
			return m
		}
	}
	switch {
	case q.Opcode != dns.OpcodeQuery:
		m.Rcode = dns.RcodeNotImplemented
		return m
	case len(q.Question) != 1:
		m.Rcode = dns.RcodeFormatError
		return m
	case t == nil:
		m.Rcode = dns.RcodeServerFailure
		return m
	}
	ask := q.Question[0]
	a := t.Lookup(strings.ToLower(strings.TrimSuffix(ask.Name, ".")))
	if a.Outcome == zone.Refused || ask.Qclass != dns.ClassINET {
		m.Rcode = dns.RcodeRefused
		return m
	}
	m.Authoritative = true
	if a.Outcome == zone.Absent {
		m.Rcode = dns.RcodeNameError
	}
	for _, ip := range a.Addresses {
		if rr := address(ask, ip); rr != nil {
			m.Answer = append(m.Answer, rr)
		}
	}
	switch {
	case ask.Qtype == dns.TypeSOA && ask.Name == dns.Fqdn(a.Domain):
		m.Answer = append(m.Answer, soa(a.Domain))
	case len(m.Answer) == 0:
		m.Ns = append(m.Ns, soa(a.Domain))
	}
	return m
}

// address returns the address as a record of the type of the question, or nil if the address is
// of the other family.
func address(q dns.Question, ip netip.Addr) dns.RR {
	h := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: ttl}
	switch {
	case q.Qtype == dns.TypeA && ip.Is4():
		return &dns.A{Hdr: h, A: net.IP(ip.AsSlice())}
	case q.Qtype == dns.TypeAAAA && ip.Is6():
		return &dns.AAAA{Hdr: h, AAAA: net.IP(ip.AsSlice())}
	}
	return nil
}

// soa returns a SOA record, which limits how long clients may cache that a name has no records.
// The zone is never transferred, so the record's other numbers have no effect.
func soa(domain string) dns.RR {
	d := dns.Fqdn(domain)
	return &dns.SOA{
		Hdr:     dns.RR_Header{Name: d, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: negativeTTL},
		Ns:      "ns." + d,
		Mbox:    "hostmaster." + d,
		Serial:  1,
		Refresh: 3600, Retry: 600, Expire: 86400,
		Minttl: negativeTTL,
	}
}

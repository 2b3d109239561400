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
	// ttl of addresses, in seconds. They are those of Tailscale Services, which seldom
	// change.
	ttl = 30

	// negativeTTL is how long clients may remember that there is nothing: the route may
	// be about to come.
	negativeTTL = 5

	// maxUDP bytes pass every link unfragmented (dnsflagday.net/2020).
	maxUDP = 1232
)

// answer a question by a table, which may be nil while it is not known.
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

// address as a record of the type that was asked for. Nil if it is of the other.
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

// soa says how long clients may remember that there is nothing. Nobody copies the
// zone: the other numbers are of no use to anyone.
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

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package nameserver

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

func table() *zone.Table {
	z := zone.Zone{
		Domains: []zone.Domain{{Name: "example.com"}, {Name: "common.example", Shared: true}},
		Names: []zone.Name{
			{Name: "app.example.com", Addresses: []netip.Addr{netip.MustParseAddr("100.64.0.1"), netip.MustParseAddr("fd7a::1")}},
			{Name: "*.shop.example.com", Addresses: []netip.Addr{netip.MustParseAddr("100.64.0.2")}},
		},
	}
	many := zone.Name{Name: "many.example.com"}
	for i := range 200 {
		many.Addresses = append(many.Addresses, netip.AddrFrom4([4]byte{100, 64, 1, byte(i)}))
	}
	z.Names = append(z.Names, many)
	return zone.NewTable(z)
}

// A reply holds the relevant fields of an answer.
type reply struct {
	Rcode         string
	Authoritative bool
	Answer, Ns    []string
}

func replyOf(m *dns.Msg) reply {
	r := reply{Rcode: dns.RcodeToString[m.Rcode], Authoritative: m.Authoritative}
	for _, rr := range m.Answer {
		r.Answer = append(r.Answer, rr.String())
	}
	for _, rr := range m.Ns {
		r.Ns = append(r.Ns, rr.String())
	}
	return r
}

func TestAnswer(t *testing.T) {
	const soa = "example.com.\t5\tIN\tSOA\tns.example.com. hostmaster.example.com. 1 3600 600 86400 5"
	ask := func(name string, kind uint16, change ...func(*dns.Msg)) *dns.Msg {
		m := new(dns.Msg).SetQuestion(name, kind)
		for _, f := range change {
			f(m)
		}
		return m
	}
	cases := map[string]struct {
		reason string
		table  *zone.Table
		ask    *dns.Msg
		want   reply
	}{
		"A": {
			reason: "A question for IPv4 gets only IPv4 addresses.",
			table:  table(), ask: ask("app.example.com.", dns.TypeA),
			want: reply{Rcode: "NOERROR", Authoritative: true, Answer: []string{"app.example.com.\t30\tIN\tA\t100.64.0.1"}},
		},
		"AAAA": {
			reason: "A question for IPv6 gets only IPv6 addresses.",
			table:  table(), ask: ask("app.example.com.", dns.TypeAAAA),
			want: reply{Rcode: "NOERROR", Authoritative: true, Answer: []string{"app.example.com.\t30\tIN\tAAAA\tfd7a::1"}},
		},
		"Case": {
			reason: "Names are case-insensitive, and the answer has the name of the question.",
			table:  table(), ask: ask("aPP.Example.com.", dns.TypeA),
			want: reply{Rcode: "NOERROR", Authoritative: true, Answer: []string{"aPP.Example.com.\t30\tIN\tA\t100.64.0.1"}},
		},
		"Wildcard": {
			reason: "An answer from a wildcard has the name of the question.",
			table:  table(), ask: ask("books.shop.example.com.", dns.TypeA),
			want: reply{Rcode: "NOERROR", Authoritative: true, Answer: []string{"books.shop.example.com.\t30\tIN\tA\t100.64.0.2"}},
		},
		"NoData": {
			reason: "A name without an address of the family exists.",
			table:  table(), ask: ask("books.shop.example.com.", dns.TypeAAAA),
			want: reply{Rcode: "NOERROR", Authoritative: true, Ns: []string{soa}},
		},
		"OtherType": {
			reason: "A name has only address records.",
			table:  table(), ask: ask("app.example.com.", dns.TypeHTTPS),
			want: reply{Rcode: "NOERROR", Authoritative: true, Ns: []string{soa}},
		},
		"SOA": {
			reason: "A domain answers with its SOA record.",
			table:  table(), ask: ask("example.com.", dns.TypeSOA),
			want: reply{Rcode: "NOERROR", Authoritative: true, Answer: []string{soa}},
		},
		"NoName": {
			reason: "A name that no route has does not exist.",
			table:  table(), ask: ask("no.example.com.", dns.TypeA),
			want: reply{Rcode: "NXDOMAIN", Authoritative: true, Ns: []string{soa}},
		},
		"Shared": {
			reason: "A name in a shared domain is left to other name servers.",
			table:  table(), ask: ask("theirs.common.example.", dns.TypeA),
			want: reply{Rcode: "REFUSED"},
		},
		"Elsewhere": {
			reason: "Other domains are refused.",
			table:  table(), ask: ask("example.org.", dns.TypeA),
			want: reply{Rcode: "REFUSED"},
		},
		"Chaos": {
			reason: "Other classes are refused.",
			table:  table(), ask: ask("app.example.com.", dns.TypeA, func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }),
			want: reply{Rcode: "REFUSED"},
		},
		"Notify": {
			reason: "Only queries are answered.",
			table:  table(), ask: ask("app.example.com.", dns.TypeA, func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify }),
			want: reply{Rcode: "NOTIMP"},
		},
		"BadVersion": {
			reason: "Only version 0 of EDNS is supported.",
			table:  table(), ask: ask("app.example.com.", dns.TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false).IsEdns0().SetVersion(1) }),
			want: reply{Rcode: dns.RcodeToString[dns.RcodeBadVers]},
		},
		"NotKnown": {
			reason: "Before the zone is known, clients must try other name servers.",
			ask:    ask("app.example.com.", dns.TypeA),
			want:   reply{Rcode: "SERVFAIL"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, replyOf(answer(tc.table, tc.ask))); diff != "" {
				t.Errorf("\n%s\nanswer(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// freeAddress returns an address with a port that is free for UDP and TCP.
func freeAddress(t *testing.T) netip.AddrPort {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		pc, err := net.ListenPacket("udp", addr)
		_ = l.Close()
		if err == nil {
			_ = pc.Close()
			return netip.MustParseAddrPort(addr)
		}
	}
	t.Fatal("no port is free")
	return netip.AddrPort{}
}

func TestServer(t *testing.T) {
	var answered atomic.Int32
	s := New(logging.NewNopLogger(), func(string) { answered.Add(1) })
	addr := freeAddress(t)
	if err := s.Listen(t.Context(), []netip.AddrPort{addr}); err != nil {
		t.Fatal(err)
	}
	s.Set(table())
	ask := func(network, name string, size uint16) (*dns.Msg, error) {
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		if size > 0 {
			m.SetEdns0(size, false)
		}
		got, _, err := (&dns.Client{Net: network, UDPSize: dns.MaxMsgSize}).ExchangeContext(t.Context(), m, addr.String())
		return got, err
	}
	cases := map[string]struct {
		reason    string
		network   string
		name      string
		size      uint16
		answers   int
		truncated bool
	}{
		"UDP":      {reason: "Questions over UDP should be answered.", network: "udp", name: "app.example.com.", answers: 1},
		"TCP":      {reason: "Questions over TCP should be answered.", network: "tcp", name: "app.example.com.", answers: 1},
		"Long":     {reason: "A long answer should be complete over TCP.", network: "tcp", name: "many.example.com.", answers: 200},
		"Short":    {reason: "A client that accepts 512 bytes should get no more, and the TC bit.", network: "udp", name: "many.example.com.", answers: 29, truncated: true},
		"Unsplit":  {reason: "No answer over UDP should be fragmented.", network: "udp", name: "many.example.com.", size: 65535, answers: 74, truncated: true},
		"Extended": {reason: "A client that accepts more than 512 bytes should get more.", network: "udp", name: "many.example.com.", size: 800, answers: 47, truncated: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ask(tc.network, tc.name, tc.size)
			if err != nil {
				t.Fatalf("\n%s\n%v", tc.reason, err)
			}
			if len(got.Answer) != tc.answers || got.Truncated != tc.truncated {
				t.Errorf("\n%s\nwant %d answers, truncated %t, got %d, %t", tc.reason, tc.answers, tc.truncated, len(got.Answer), got.Truncated)
			}
		})
	}
	if got := answered.Load(); got != int32(len(cases)) {
		t.Errorf("%d questions were counted, want %d", got, len(cases))
	}

	s.Set(zone.NewTable(zone.Zone{}))
	if got, err := ask("udp", "app.example.com.", 0); err != nil || got.Rcode != dns.RcodeRefused {
		t.Errorf("a new zone should take effect at once, got %v, %v", got, err)
	}
	other := freeAddress(t)
	if err := s.Listen(t.Context(), []netip.AddrPort{other}); err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"udp", "tcp"} {
		if got, err := ask(network, "app.example.com.", 0); err == nil {
			t.Errorf("a removed address answered over %s: %v", network, got)
		}
	}
	if err := s.Listen(t.Context(), []netip.AddrPort{other, netip.MustParseAddrPort(fmt.Sprintf("192.0.2.1:%d", addr.Port()))}); err == nil {
		t.Error("an address that is not the machine's should be an error")
	}
	addr = other
	if _, err := ask("udp", "app.example.com.", 0); err != nil {
		t.Errorf("an address should answer when listening on another one fails: %v", err)
	}
	s.Close()
	if got, err := ask("tcp", "app.example.com.", 0); err == nil {
		t.Errorf("a closed server answered: %v", got)
	}
}

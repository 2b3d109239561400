// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
)

// TestDNS looks up names with the system's resolver at a real DNS server.
func TestDNS(t *testing.T) {
	addr := serve(t, map[string][]string{
		"both.example.com.": {"192.0.2.1", "2001:db8::1"},
		"six.example.com.":  {"2001:db8::1"},
	})
	system := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", addr)
	}}
	h := newHosts("both.example.com.", "six.example.com.", "none.example.com.")
	none := make(chan error, 1)
	run(t, h, address.Families{}, func(ctx context.Context, network, host string) ([]netip.Addr, error) {
		found, err := system.LookupNetIP(ctx, network, host)
		if host == "none.example.com." {
			select {
			case none <- err:
			default: // It is looked up again.
			}
		}
		return found, err
	})
	var dns *net.DNSError
	if err := <-none; !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("want an error that the name does not exist, got %v", err)
	}
	want := []string{"both.example.com. 192.0.2.1", "none.example.com.", "six.example.com. 2001:db8::1"}
	timeout := time.After(10 * time.Second)
	said := func() []string { return slices.Sorted(slices.Values(h.said())) }
	for got := said(); !slices.Equal(want, got); got = said() {
		select {
		case <-h.written:
		case <-timeout:
			t.Fatalf("-want, +got\n%s", cmp.Diff(want, got))
		}
	}
}

// serve starts a DNS server that answers with these addresses, and returns its address.
func serve(t *testing.T, names map[string][]string) string {
	t.Helper()
	c, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	go func() {
		defer close(ended)
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			rsp, err := respond(names, b[:n])
			if err == nil {
				_, err = c.WriteTo(rsp, from)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	return c.LocalAddr().String()
}

func respond(names map[string][]string, query []byte) ([]byte, error) {
	m := dnsmessage.Message{}
	if err := m.Unpack(query); err != nil {
		return nil, errors.Wrap(err, "cannot read query")
	}
	q := m.Questions[0]
	addresses, ok := names[q.Name.String()]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, s := range addresses {
		a := netip.MustParseAddr(s)
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 5}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return m.Pack()
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package resolvertest is a DNS server for tests.
package resolvertest

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// maxQuery is the size of the largest query in bytes, by EDNS.
const maxQuery = 1500

// Serve starts a DNS server until the test ends, and returns a resolver that asks it. names have a dot
// at the end. The server answers for other names that they do not exist.
func Serve(t testing.TB, names map[string][]string) *net.Resolver {
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
		b := make([]byte, maxQuery)
		for {
			n, sender, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			rsp, err := respond(names, b[:n])
			if err == nil {
				_, err = c.WriteTo(rsp, sender)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", c.LocalAddr().String())
	}}
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

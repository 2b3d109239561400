// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailnet connects to addresses through a tailscaled, and in no other way.
// Package daemon creates the lab's clients.
package tailnet

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	"tailscale.com/client/local"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

// Transport returns an HTTP transport whose connections all go through the
// tailscaled behind the socket.
func Transport(socket string) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return Dial(ctx, socket, network, addr)
		},
	}
}

// Dial connects to an address in the tailnet. Like any program it tries all addresses of a name,
// IPv4 first: tailscaled alone would use only one address of a Service.
func Dial(ctx context.Context, socket, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot dial %q", addr)
	}
	addresses, err := resolve(ctx, socket, host)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot resolve %q", host)
	}
	var failed error
	for _, a := range addresses {
		c, err := localapi.NewDialer(socket).DialContext(ctx, network, net.JoinHostPort(a, port))
		if err == nil {
			return c, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// resolve resolves a name as tailscaled does for programs of its machine.
func resolve(ctx context.Context, socket, host string) ([]string, error) {
	if net.ParseIP(host) != nil {
		return []string{host}, nil
	}
	tailscaled := &local.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	var out []string
	for _, recordType := range []string{"A", "AAAA"} {
		b, _, err := tailscaled.QueryDNS(ctx, strings.TrimSuffix(host, ".")+".", recordType)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot query tailscaled for %s records", recordType)
		}
		answer := dnsmessage.Message{}
		if err := answer.Unpack(b); err != nil {
			return nil, errors.Wrapf(err, "cannot read %s records", recordType)
		}
		for _, r := range answer.Answers {
			switch body := r.Body.(type) {
			case *dnsmessage.AResource:
				out = append(out, netip.AddrFrom4(body.A).String())
			case *dnsmessage.AAAAResource:
				out = append(out, netip.AddrFrom16(body.AAAA).String())
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the tailnet has no such name")
	}
	return out, nil
}

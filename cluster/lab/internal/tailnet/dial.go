// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package tailnet reaches addresses by a tailscaled, and by nothing else. How
// the lab's clients come to be lives in package daemon.
package tailnet

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	"tailscale.com/client/local"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
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

// Dial connects to an address of the tailnet by tailscaled's LocalAPI. It is
// not tailscale.com's client, as that one dials by itself what tailscaled finds
// not to be of the tailnet: here, that is an error. Like any program it tries all
// addresses of a name, IPv4 first; tailscaled alone would know one of a Service.
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
		c, err := dial(ctx, socket, network, a, port)
		if err == nil {
			return c, nil
		}
		failed = errors.Join(failed, errors.Wrapf(err, "cannot dial %q by the tailnet", net.JoinHostPort(a, port)))
	}
	return nil, failed
}

// resolve resolves a name as tailscaled does for programs of its machine. It leaves unknown
// names to dial, which returns an error.
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
			return nil, errors.Wrapf(err, "cannot ask tailscaled for %s records", recordType)
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
		return []string{host}, nil
	}
	return out, nil
}

func dial(ctx context.Context, socket, network, host, port string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, errors.Wrap(err, "cannot reach tailscaled")
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	out, err := upgrade(ctx, c, network, host, port)
	if err != nil {
		_ = c.Close() // The other error has the cause.
		return nil, err
	}
	return out, nil
}

func upgrade(ctx context.Context, c net.Conn, network, host, port string) (net.Conn, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://local-tailscaled.sock/localapi/v0/dial", nil)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{
		"Upgrade":      {"ts-dial"},
		"Connection":   {"upgrade"},
		"Dial-Host":    {host},
		"Dial-Port":    {port},
		"Dial-Network": {network},
	}
	if err := req.Write(c); err != nil {
		return nil, err
	}
	r := bufio.NewReader(c)
	rsp, err := http.ReadResponse(r, req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if rsp.StatusCode == http.StatusSwitchingProtocols {
		return buffered{Conn: c, r: r}, nil
	}
	defer rsp.Body.Close() // The connection is closed anyway.
	if rsp.Header.Get("Dial-Self") != "" {
		return nil, errors.New("no machine of the tailnet holds that address")
	}
	b, err := io.ReadAll(io.LimitReader(rsp.Body, 4096))
	if err != nil {
		return nil, err
	}
	return nil, errors.Errorf("tailscaled says: %s", strings.TrimSpace(string(b)))
}

// buffered reads first what came with the answer.
type buffered struct {
	net.Conn

	r *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

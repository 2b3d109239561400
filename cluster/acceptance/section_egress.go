// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

const sectionEgress = "egress"

// Destinations of the egress rows: a port of a host's own address, and an address for documentation
// (RFC 5737), which only the run's router serves.
const (
	egressPort   = 8090
	subnet       = "198.51.100.0/24"
	behindRouter = "198.51.100.7"
)

// egressRows returns the rows that connect as the agent of an egress pod does: through the
// tailscaled of its pod, with the product's dialer.
func egressRows() []row {
	write := []need{needWrite}
	return []row{
		{sectionEgress, "peer", "A proxy connects to a machine of the tailnet.", write, egressPeer},
		{sectionEgress, "service", "A proxy connects to a Tailscale Service.", write, egressService},
		{sectionEgress, "subnet", "A proxy connects to an address behind a subnet router, which is refused before the route exists.", write, egressSubnet},
	}
}

// egress returns the proxy from which the rows connect. It lives until the run ends.
func (t *turn) egress(ctx context.Context) (*proxy, error) {
	if t.run.egress != nil {
		return t.run.egress, nil
	}
	p, err := t.startProxy(ctx, "egress-proxy", proxyOptions{acceptRoutes: true})
	if err != nil {
		return nil, err
	}
	t.run.egress = p
	return p, p.joined(ctx, t)
}

// answerThrough waits until the proxy gets an answer from an address, and returns its first word.
func (t *turn) answerThrough(ctx context.Context, p *proxy, addr netip.AddrPort) (string, error) {
	d := localapi.NewDialer(p.socket)
	var word string
	took, err := t.until(ctx, addr.String()+" answers", func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		c, err := d.Dial(ctx, addr)
		if err != nil {
			return err.Error(), nil // It may be reached a moment later.
		}
		defer func() { _ = c.Close() }() // All was read.
		if err := c.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
			return "", errors.Wrap(err, "cannot set a deadline")
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return err.Error(), nil
		}
		word, _, _ = strings.Cut(strings.TrimSpace(line), " ")
		return "", nil
	})
	t.measure("reached", took)
	return word, errors.Wrap(err, "does the policy file let "+t.run.opts.Tag+" reach it?")
}

func egressPeer(ctx context.Context, t *turn) error {
	hosts, err := t.twoHosts(ctx)
	if err != nil {
		return err
	}
	n := hosts[0]
	ln, err := n.srv.Listen("tcp", ":"+string(mustJSON(egressPort)))
	if err != nil {
		return errors.Wrap(err, "cannot listen on a node")
	}
	h := &host{node: n, conns: map[net.Conn]bool{}}
	defer h.close()
	h.accept(ctx, ln, 0)
	p, err := t.egress(ctx)
	if err != nil {
		return err
	}
	responder, err := t.answerThrough(ctx, p, netip.AddrPortFrom(n.v4, egressPort))
	if err == nil && responder != n.hostname {
		err = errors.Errorf("%q answered, want %s", responder, n.hostname)
	}
	return err
}

func egressService(ctx context.Context, t *turn) error {
	s, hosts, err := t.web(ctx)
	if err != nil {
		return err
	}
	v4, _, err := addresses(s)
	if err != nil {
		return err
	}
	p, err := t.egress(ctx)
	if err != nil {
		return err
	}
	responder, err := t.answerThrough(ctx, p, netip.AddrPortFrom(v4, 80))
	if err == nil && !slices.Contains(hostnames(hosts), responder) {
		err = errors.Errorf("%q answered, want one of %v", responder, hostnames(hosts))
	}
	return err
}

func egressSubnet(ctx context.Context, t *turn) (err error) {
	hosts, err := t.twoHosts(ctx)
	if err != nil {
		return err
	}
	p, err := t.egress(ctx)
	if err != nil {
		return err
	}
	addr := netip.AddrPortFrom(netip.MustParseAddr(behindRouter), egressPort)
	c, err := localapi.NewDialer(p.socket).Dial(ctx, addr)
	if c != nil {
		_ = c.Close() // It should not exist.
	}
	if !errors.Is(err, localapi.ErrOutside) {
		return errors.Errorf("an address without a route: got %v, want that it is outside of the tailnet", err)
	}
	router := hosts[0]
	h := &host{node: router, conns: map[net.Conn]bool{}}
	defer h.close()
	defer router.srv.RegisterFallbackTCPHandler(func(_, dst netip.AddrPort) (func(net.Conn), bool) {
		if dst != addr {
			return nil, false
		}
		return func(c net.Conn) { h.answer(context.WithoutCancel(ctx), c, 0) }, true
	})()
	defer func() { err = errors.Join(err, t.route(context.WithoutCancel(ctx), router)) }()
	if err := t.route(ctx, router, subnet); err != nil {
		return err
	}
	responder, err := t.answerThrough(ctx, p, addr)
	if err == nil && responder != router.hostname {
		err = errors.Errorf("%q answered, want %s", responder, router.hostname)
	}
	return err
}

// route advertises and approves subnets of a node as a router. Without subnets, the node is no
// longer one.
func (t *turn) route(ctx context.Context, n *node, subnets ...string) error {
	prefs := &ipn.MaskedPrefs{AdvertiseRoutesSet: true}
	for _, s := range subnets {
		prefs.AdvertiseRoutes = append(prefs.AdvertiseRoutes, netip.MustParsePrefix(s))
	}
	if _, err := n.local.EditPrefs(ctx, prefs); err != nil {
		return errors.Wrap(err, "cannot advertise routes")
	}
	r, err := t.send(ctx, http.MethodPost, map[string]any{"routes": append([]string{}, subnets...)}, "device", n.id, "routes")
	if err != nil {
		return err
	}
	return t.want("POST routes", r, http.StatusOK)
}

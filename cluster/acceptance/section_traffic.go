// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

const sectionTraffic = "traffic"

func trafficRows() []row {
	write := []need{needWrite}
	reach := []row{
		{sectionTraffic, "by-address", "A third node reaches the service by its IPv4 and IPv6 addresses.", write, byAddress},
		{sectionTraffic, "by-name", "The service's name resolves to its address.", write, byName},
		{sectionTraffic, "proxy-protocol", "A host gets a PROXY protocol header with the client's address, and WhoIs knows the client.", write, proxyProtocol},
	}
	leave := []row{
		{sectionTraffic, "drain", "Traffic moves from a host that withdraws the service to the other; how long nobody answers.", write, drain},
		{sectionTraffic, "delete", "Traffic moves from a host whose device is removed to the other; how long nobody answers.", write, deleteHost},
		{sectionTraffic, "kill", "Traffic moves from a host that ends without withdrawing to the other; how long nobody answers.", write, killHost},
		{sectionTraffic, "withdrawn", "A service that nobody hosts has no route.", write, withdrawn},
	}
	return slices.Concat(reach, approvalRows(), leave)
}

// movesByItself is the observation that other hosts take over without help.
const movesByItself = "traffic moves by itself"

// reaches waits until a node reaches port 80 of an address, where one of the named hosts answers.
func (t *turn) reaches(ctx context.Context, client *node, a netip.Addr, names ...string) error {
	took, err := t.until(ctx, a.String()+" answers", func(ctx context.Context) (string, error) {
		words, err := client.answers(ctx, netip.AddrPortFrom(a, 80))
		if err != nil {
			return err.Error(), nil //nolint:nilerr // It may be reached a moment later.
		}
		if len(words) == 0 || !slices.Contains(names, words[0]) {
			return "", errors.Errorf("%q answered, want one of %v", words, names)
		}
		return "", nil
	})
	t.measure(fmt.Sprintf("reached, IPv%d", ipVersion(a)), took)
	return errors.Wrap(err, "does the policy file let "+t.run.opts.Tag+" reach the service?")
}

func ipVersion(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

func hostnames(ns []*node) []string {
	var out []string
	for _, n := range ns {
		out = append(out, n.hostname)
	}
	return out
}

// traffic returns what rows about traffic need: the client, the hosts and the addresses of the
// service.
func (t *turn) traffic(ctx context.Context) (client *node, hosts []*node, v4, v6 netip.Addr, err error) {
	if client, err = t.client(ctx); err != nil {
		return client, nil, v4, v6, err
	}
	s, hosts, err := t.web(ctx)
	if err != nil {
		return client, nil, v4, v6, err
	}
	v4, v6, err = addresses(s)
	return client, hosts, v4, v6, err
}

func byAddress(ctx context.Context, t *turn) error {
	client, hosts, v4, v6, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	return errors.Join(t.reaches(ctx, client, v4, hostnames(hosts)...), t.reaches(ctx, client, v6, hostnames(hosts)...))
}

func byName(ctx context.Context, t *turn) error {
	client, hosts, v4, _, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	domain, err := client.domain(ctx)
	if err != nil {
		return err
	}
	st, err := client.status(ctx)
	if err != nil {
		return err
	}
	if !st.CurrentTailnet.MagicDNSEnabled {
		return skipf(skipMissing, "the tailnet has MagicDNS turned off")
	}
	name := strings.TrimPrefix(t.run.web.Name, "svc:") + "." + domain
	took, err := t.until(ctx, "the name resolves", func(ctx context.Context) (string, error) {
		all, err := client.lookup(ctx, name)
		if err != nil {
			return err.Error(), nil //nolint:nilerr // It may resolve a moment later.
		}
		if !slices.Contains(all, v4) {
			return fmt.Sprintf("it resolves to %v, want %s", all, v4), nil
		}
		return "", nil
	})
	t.measure("resolved", took)
	if err != nil {
		return err
	}
	return t.reaches(ctx, client, v4, hostnames(hosts)...)
}

func proxyProtocol(ctx context.Context, t *turn) error {
	client, hosts, v4, _, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	if err := t.reaches(ctx, client, v4, hostnames(hosts)...); err != nil {
		return err
	}
	for port, version := range webPorts {
		if version == 0 {
			continue
		}
		words, err := client.answers(ctx, netip.AddrPortFrom(v4, port))
		if err != nil {
			return err
		}
		if len(words) != 3 {
			return errors.Errorf("version %d: the host got %q", version, words)
		}
		source, err := netip.ParseAddrPort(words[1])
		if err != nil || source.Addr() != client.v4 {
			return errors.Errorf("version %d: the header names %s, the client is %s", version, words[1], client.v4)
		}
		if words[2] != client.id {
			return errors.Errorf("version %d: WhoIs says %s, the client is %s", version, words[2], client.id)
		}
	}
	return nil
}

// away calls leave for the host that carries traffic, and measures how traffic moves. If it does
// not move within the timeout, away calls rescue, or fails if rescue is nil.
func (t *turn) away(ctx context.Context, leave, rescue func(ctx context.Context, n *node) error) error {
	client, hosts, v4, _, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	at := netip.AddrPortFrom(v4, 80)
	if err := t.reaches(ctx, client, v4, hostnames(hosts)...); err != nil {
		return err
	}
	words, conn, reader, err := client.ask(ctx, at)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // Only its data matters.
	i := slices.IndexFunc(hosts, func(n *node) bool { return n.hostname == words[0] })
	if i < 0 {
		return errors.Errorf("%s answers, but is none of the hosts", words[0])
	}
	primary := hosts[i]

	p := startProber(ctx, client, at)
	defer p.Stop()
	// The prober needs an answer before the event.
	if _, err := t.until(ctx, "the prober is answered", func(context.Context) (string, error) {
		if slices.ContainsFunc(p.soFar(), func(p load.Request) bool { return p.Err == nil }) {
			return "", nil
		}
		return "not yet", nil
	}); err != nil {
		return err
	}
	event := time.Now()
	if err := leave(ctx, primary); err != nil {
		return err
	}
	moved := func(context.Context) (string, error) {
		if m := moveIn(p.soFar(), primary.hostname, event); m.to == "" {
			return "no other host answers", nil
		}
		return "", nil
	}
	_, err = t.until(ctx, "traffic moves", moved)
	var tooLate late
	t.observe(movesByItself, err == nil)
	if errors.As(err, &tooLate) && rescue != nil {
		t.note("traffic did not move within %s; removing the device, as the product does", t.run.opts.Timeout)
		if err := rescue(ctx, primary); err != nil {
			return err
		}
		_, err = t.until(ctx, "traffic moves", moved)
	}
	if err != nil {
		return err
	}
	m := moveIn(p.soFar(), primary.hostname, event)
	t.measure("traffic moved after", m.delay)
	t.measure("black hole", m.blackHole)
	t.observe("an open connection outlives the move", echoes(conn, reader))
	return nil
}

// echoes reports whether a connection that was open before still carries data.
func echoes(c net.Conn, reader io.Reader) bool {
	if c.SetDeadline(time.Now().Add(probeTimeout)) != nil {
		return false
	}
	const word = "still there\n"
	if _, err := io.WriteString(c, word); err != nil {
		return false
	}
	b := make([]byte, len(word))
	_, err := io.ReadFull(reader, b)
	return err == nil && string(b) == word
}

func drain(ctx context.Context, t *turn) error {
	return t.away(ctx, func(ctx context.Context, n *node) error { return n.advertise(ctx) }, nil)
}

// removeHost removes a host's device through the API.
func (t *turn) removeHost(ctx context.Context, n *node) error {
	if err := t.product.Devices().DeleteDevice(ctx, n.id); err != nil {
		return err
	}
	return t.run.ledger.gone(n.seq)
}

func deleteHost(ctx context.Context, t *turn) error {
	var deleted *node
	err := t.away(ctx, func(ctx context.Context, n *node) error {
		deleted = n
		return t.removeHost(ctx, n)
	}, nil)
	if deleted != nil {
		err = errors.Join(err, deleted.close())
	}
	return err
}

func killHost(ctx context.Context, t *turn) error {
	return t.away(ctx, func(_ context.Context, n *node) error { return n.close() }, t.removeHost)
}

func withdrawn(ctx context.Context, t *turn) error {
	client, hosts, v4, _, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	for _, n := range hosts {
		if err := n.advertise(ctx); err != nil {
			return err
		}
	}
	took, err := t.until(ctx, "nobody has the address", func(ctx context.Context) (string, error) {
		h, err := client.holder(ctx, v4)
		if err != nil || h == "" {
			return "", err
		}
		return h + " has it", nil
	})
	t.measure("route gone", took)
	var tooLate late
	if errors.As(err, &tooLate) {
		t.observe("the route goes", false)
		t.note("a host that withdrew keeps the address: connections to it end or hang")
		return nil
	}
	t.observe("the route goes", err == nil)
	if err != nil {
		return err
	}
	r, err := t.get(ctx, t.tn("services", t.run.web.Name, "devices")...)
	if err != nil {
		return err
	}
	return t.want("GET hosts", r, http.StatusOK)
}

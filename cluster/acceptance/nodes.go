// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"tailscale.com/client/local"
	"tailscale.com/envknob"
	"tailscale.com/ipn"
	"tailscale.com/ipn/ipnstate"
	"tailscale.com/net/netns"
	"tailscale.com/tailcfg"
	"tailscale.com/tsnet"
	"tailscale.com/types/logger"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// simulatorEnv is the environment of nodes of a coordination server other than Tailscale's: they
// contact no other server.
var simulatorEnv = map[string]string{
	"TS_NO_LOGS_NO_SUPPORT":         "true",
	"TS_DISABLE_PORTMAPPER":         "1",
	"TS_ASSUME_NETWORK_UP_FOR_TEST": "1",
	"TS_PANIC_IF_HIT_MAIN_CONTROL":  "1",
}

// isolate keeps nodes of this process from everything but the tailnet.
var isolate = sync.OnceFunc(func() {
	for k, v := range simulatorEnv {
		envknob.Setenv(k, v)
	}
	netns.SetEnabled(false)
})

// A node is a machine of the tailnet inside this process.
type node struct {
	hostname string
	id       string
	v4       netip.Addr
	srv      *tsnet.Server
	local    *local.Client
	seq      int // Its device in the ledger.
	host     *host
	offered  []string // Services that it advertises.
	dead     bool
}

// nodes are the nodes of a run, which rows share.
type nodes struct {
	all     []*node
	client  *node
	hosts   []*node
	created int

	// failed is the error of a node that could not join. Other nodes would fail after the same time.
	failed error
}

// An authKey logs one node in.
type authKey struct{ id, secret string }

// mint creates a single-use key.
func (t *turn) mint(ctx context.Context, suffix string, ephemeral bool) (authKey, error) {
	description := t.run.prefix + " " + suffix
	seq, err := t.run.ledger.intend("", kindKey, description, "")
	if err != nil {
		return authKey{}, err
	}
	body := map[string]any{
		"description": description, "expirySeconds": 3600,
		"capabilities": map[string]any{"devices": map[string]any{"create": map[string]any{
			"reusable": false, "ephemeral": ephemeral, "preauthorized": true, "tags": []string{t.run.opts.Tag},
		}}},
	}
	r, err := t.send(ctx, http.MethodPost, body, t.tn("keys")...)
	if err != nil {
		return authKey{}, err
	}
	if err := errors.Join(t.tried(seq, r), t.want("POST key", r, http.StatusOK, http.StatusCreated)); err != nil {
		return authKey{}, err
	}
	k := authKey{str(r.object(), "id"), str(r.object(), "key")}
	if k.id == "" || k.secret == "" {
		return k, errors.New("the reply has no key, or no id")
	}
	t.secret.know(k.secret)
	return k, t.run.ledger.made(seq, k.id)
}

// join creates a node that other rows may use, too.
func (t *turn) join(ctx context.Context, suffix string, ephemeral bool) (*node, error) {
	if !t.run.opts.real() {
		isolate()
	}
	if err := t.run.nodes.failed; err != nil {
		return nil, skipf(skipMissing, "nodes cannot join: %v", err)
	}
	key, err := t.mint(ctx, suffix, ephemeral)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(os.TempDir(), t.name(suffix))
	if _, err := t.run.ledger.intend("", kindDir, dir, ""); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, errors.Wrap(err, "cannot create a node's folder")
	}
	n := &node{hostname: t.name(suffix)}
	if n.seq, err = t.run.ledger.intend("", kindDevice, n.hostname, ""); err != nil {
		return nil, err
	}
	n.srv = &tsnet.Server{
		Dir: dir, Hostname: n.hostname, ControlURL: t.run.opts.ControlURL, AuthKey: key.secret, Ephemeral: ephemeral,
		Logf: logger.Discard, UserLogf: logger.Discard,
	}
	// A node that did not start cannot be closed.
	if err := n.srv.Start(); err != nil {
		return nil, errors.Wrapf(err, "node %s cannot start", n.hostname)
	}
	t.run.nodes.all = append(t.run.nodes.all, n)
	ctx, cancel := context.WithTimeout(ctx, t.run.opts.Timeout)
	defer cancel()
	st, err := n.srv.Up(ctx)
	if err != nil {
		t.run.nodes.failed = errors.Wrapf(err, "node %s cannot join", n.hostname)
		return nil, t.run.nodes.failed
	}
	if n.local, err = n.srv.LocalClient(); err != nil {
		return nil, errors.Wrap(err, "cannot create a client of a node")
	}
	n.id = string(st.Self.ID)
	n.v4, _ = n.srv.TailscaleIPs()
	return n, errors.Join(t.run.ledger.made(n.seq, n.id), t.run.ledger.located(domainName(st)))
}

// close ends a node. Its device stays in the tailnet.
func (n *node) close() error {
	if n.dead {
		return nil
	}
	n.dead = true
	if n.host != nil {
		n.host.close()
	}
	return errors.Wrap(n.srv.Close(), "cannot close a node")
}

// close ends all nodes.
func (n *nodes) close() error {
	var errs []error
	for _, n := range n.all {
		errs = append(errs, n.close())
	}
	*n = nodes{}
	return errors.Join(errs...)
}

// client returns the node that connects to services.
func (t *turn) client(ctx context.Context) (*node, error) {
	if n := t.run.nodes.client; n != nil {
		return n, nil
	}
	n, err := t.join(ctx, "client", true)
	if err == nil {
		t.run.nodes.client = n
	}
	return n, err
}

// twoHosts returns two running nodes. It replaces nodes that rows have stopped.
func (t *turn) twoHosts(ctx context.Context) ([]*node, error) {
	ns := &t.run.nodes
	ns.hosts = slices.DeleteFunc(ns.hosts, func(n *node) bool { return n.dead })
	for len(ns.hosts) < 2 {
		ns.created++
		n, err := t.join(ctx, "host-"+string(mustJSON(ns.created)), false)
		if err != nil {
			return nil, err
		}
		ns.hosts = append(ns.hosts, n)
	}
	return ns.hosts, nil
}

// status returns the status of the node, without its peers.
func (n *node) status(ctx context.Context) (*ipnstate.Status, error) {
	st, err := n.local.StatusWithoutPeers(ctx)
	return st, errors.Wrap(err, "cannot get a node's status")
}

// accepted reports whether control has accepted the node as a host of a service, by
// the node's own capability.
func (n *node) accepted(ctx context.Context, service string) (bool, error) {
	st, err := n.status(ctx)
	if err != nil || st.Self == nil {
		return false, err
	}
	return acceptedIn(st.Self.CapMap, service), nil
}

func acceptedIn(cm tailcfg.NodeCapMap, service string) bool {
	mappings, err := tailcfg.UnmarshalNodeCapJSON[tailcfg.ServiceIPMappings](cm, tailcfg.NodeAttrServiceHost)
	return err == nil && slices.ContainsFunc(mappings, func(m tailcfg.ServiceIPMappings) bool {
		return slices.Contains(slices.Collect(maps.Keys(m)), tailcfg.ServiceName(service))
	})
}

// holder returns the node ID of the peer that has an address, or an empty string.
func (n *node) holder(ctx context.Context, a netip.Addr) (string, error) {
	st, err := n.local.Status(ctx)
	if err != nil {
		return "", errors.Wrap(err, "cannot get a node's status")
	}
	for _, p := range st.Peer {
		if p.AllowedIPs != nil && slices.Contains(p.AllowedIPs.AsSlice(), netip.PrefixFrom(a, a.BitLen())) {
			return string(p.ID), nil
		}
	}
	return "", nil
}

// errNoRoute means that no peer has the address now.
var errNoRoute = errors.New("no peer has the address")

// dialTimeout bounds one connection.
const dialTimeout = 5 * time.Second

// dial connects to an address of the tailnet, and nowhere else. tsnet's own Dial goes to the host's
// network when no peer has the address (dialOneUser in net/tsdial/tsdial.go of tailscale.com): so a
// peer must have it, and the dialer is that of the node's own network stack, which cannot leave the
// tailnet.
func (n *node) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	h, err := n.holder(ctx, addr.Addr())
	if err != nil {
		return nil, err
	}
	if h == "" {
		return nil, errNoRoute
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := n.srv.Sys().Dialer.Get().NetstackDialTCP(ctx, addr)
	return c, errors.Wrapf(err, "cannot connect to %s", addr)
}

// lookup resolves a name as the node does.
func (n *node) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	b, _, err := n.local.QueryDNS(ctx, name+".", "A")
	if err != nil {
		return nil, errors.Wrapf(err, "cannot resolve %s", name)
	}
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		return nil, errors.Wrap(err, "cannot read a DNS answer")
	}
	var out []netip.Addr
	for _, a := range m.Answers {
		if r, ok := a.Body.(*dnsmessage.AResource); ok {
			out = append(out, netip.AddrFrom4(r.A))
		}
	}
	return out, nil
}

// domain returns the tailnet's DNS name.
func (n *node) domain(ctx context.Context) (string, error) {
	st, err := n.status(ctx)
	if err != nil {
		return "", err
	}
	d := domainName(st)
	if d == "" {
		return "", skipf(skipMissing, "the node does not know the tailnet's domain")
	}
	return d, nil
}

// domainName returns the tailnet's DNS name as a node knows it, or an empty string.
func domainName(st *ipnstate.Status) string {
	if st.CurrentTailnet == nil {
		return ""
	}
	return st.CurrentTailnet.MagicDNSSuffix
}

// advertise advertises these services, and no others.
func (n *node) advertise(ctx context.Context, services ...string) error {
	_, err := n.local.EditPrefs(ctx, &ipn.MaskedPrefs{Prefs: ipn.Prefs{AdvertiseServices: services}, AdvertiseServicesSet: true})
	n.offered = services
	return errors.Wrap(err, "cannot advertise services")
}

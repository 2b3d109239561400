//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// An inputCheck compares a message with the answer of a replica.
type inputCheck struct {
	*testing.T
	replica

	message, answer *pb.PostTranslateModifyRequest
}

func (c *inputCheck) check() {
	c.Helper()
	c.again()
	c.valid()
	echo(c, "cluster", c.message.GetClusters(), c.answer.GetClusters(), func(name string) bool { return c.isOurs(name) })
	echo(c, "secret", c.message.GetSecrets(), c.answer.GetSecrets(), func(string) bool { return false })
	echo(c, "listener", c.message.GetListeners(), c.answer.GetListeners(), c.changes)
	c.routes()
	c.references()
	c.settings()
}

// again checks that the hook answers the same message, and its own answer, with the same result.
func (c *inputCheck) again() {
	c.Helper()
	want := encodeRequest(c.T, c.answer)
	first := answerInput(c.T, c.replica, proto.CloneOf(c.message))
	if got := encodeRequest(c.T, first); !bytes.Equal(want, got) {
		c.Error("two answers to one message differ")
	}
	if c.otherwise {
		return
	}
	second := answerInput(c.T, c.replica, first)
	if got := encodeRequest(c.T, second); !bytes.Equal(want, got) {
		c.Error("the answer to an answer differs")
	}
}

func encodeRequest(t *testing.T, r *pb.PostTranslateModifyRequest) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// valid checks that Envoy Gateway publishes the answer, even if it would not publish the message.
func (c *inputCheck) valid() {
	c.Helper()
	for _, m := range messagesOf(c.answer) {
		if err := m.ValidateAll(); err != nil {
			c.Errorf("Envoy Gateway refuses %s: %v", m.GetName(), err)
		}
	}
}

// A named message can be validated.
type named interface {
	proto.Message
	GetName() string
	ValidateAll() error
}

func messagesOf(r *pb.PostTranslateModifyRequest) []named {
	var out []named
	for _, m := range r.GetClusters() {
		out = append(out, m)
	}
	for _, m := range r.GetListeners() {
		out = append(out, m)
	}
	for _, m := range r.GetRoutes() {
		out = append(out, m)
	}
	for _, m := range r.GetSecrets() {
		out = append(out, m)
	}
	return out
}

// used reports whether it is the name of a secret of the extension that a cluster of the answer uses.
func (c *inputCheck) used(name string) bool {
	return xds.IsSecret(name) && slices.ContainsFunc(c.answer.GetClusters(), func(cluster *clusterv3.Cluster) bool { return slices.Contains(xds.SecretsOf(cluster), name) })
}

// echo checks that messages that may not change are returned unchanged and in order. Some listeners
// of a message share a name.
func echo[T named](c *inputCheck, kind string, previous, updated []T, may func(name string) bool) {
	c.Helper()
	previousNames, updatedNames := numbered(previous), numbered(updated)
	lookup := map[string]T{}
	var order []string
	for i, n := range updatedNames {
		lookup[n] = updated[i]
		if slices.Contains(previousNames, n) {
			order = append(order, n)
		} else if kind != "cluster" && !c.used(updated[i].GetName()) {
			c.Errorf("%s %s is new", kind, n)
		}
	}
	for i, n := range previousNames {
		at := slices.Index(order, n)
		switch {
		case at < 0:
			if !may(previous[i].GetName()) {
				c.Errorf("%s %s is gone", kind, n)
			}
			continue
		case at > 0:
			c.Errorf("%s %s comes after %s, and came before it in the message", kind, n, order[0])
		}
		order = slices.Delete(order, at, at+1)
		if !may(previous[i].GetName()) && !proto.Equal(previous[i], lookup[n]) {
			c.Errorf("%s %s names no Tailscale backend, and changes:\n%v\n%v", kind, n, previous[i], lookup[n])
		}
	}
}

// numbered returns names with a number, which makes them unique.
func numbered[T named](messages []T) []string {
	var out []string
	seen := map[string]int{}
	for _, m := range messages {
		out = append(out, fmt.Sprintf("%s#%d", m.GetName(), seen[m.GetName()]))
		seen[m.GetName()]++
	}
	return out
}

var ofRule = regexp.MustCompile(`^([a-z]+route/[^/]+/[^/]+/rule/-?[0-9]+)(/.*|-mirror-.*)?$`)

// isOurs reports whether a name belongs to a rule with a Tailscale backend.
func (c *inputCheck) isOurs(name string) bool {
	m := ofRule.FindStringSubmatch(name)
	if m == nil {
		return false
	}
	k, _, ok := parseRule(m[1])
	return ok && c.hasOurs(k)
}

func (c *inputCheck) hasOurs(k ruleKey) bool {
	if !c.whole && k.http() {
		return c.ours[k]
	}
	for key := range c.ours {
		if key.route == k.route {
			return true
		}
	}
	return false
}

// changes reports whether a listener may change: its policies record the client, or it sends
// connections directly to a Tailscale backend.
func (c *inputCheck) changes(listener string) bool {
	if c.policed {
		return true
	}
	return slices.ContainsFunc(c.message.GetListeners(), func(l *listenerv3.Listener) bool {
		return l.GetName() == listener && slices.ContainsFunc(sentBy(c.T, l), c.isOurs)
	})
}

// sentBy returns the clusters to which a listener sends connections.
func sentBy(t *testing.T, l *listenerv3.Listener) []string {
	t.Helper()
	var out []string
	tcp, udp := &tcpproxyv3.TcpProxy{}, &udpproxyv3.UdpProxyConfig{}
	for _, f := range slices.Concat(l.GetFilterChains(), []*listenerv3.FilterChain{l.GetDefaultFilterChain()}) {
		for _, f := range f.GetFilters() {
			if !f.GetTypedConfig().MessageIs(tcp) {
				continue
			}
			if err := f.GetTypedConfig().UnmarshalTo(tcp); err != nil {
				t.Fatal(err)
			}
			if n := tcp.GetCluster(); n != "" {
				out = append(out, n)
			}
			for _, w := range tcp.GetWeightedClusters().GetClusters() {
				out = append(out, w.GetName())
			}
		}
	}
	for _, f := range l.GetListenerFilters() {
		if !f.GetTypedConfig().MessageIs(udp) {
			continue
		}
		if err := f.GetTypedConfig().UnmarshalTo(udp); err != nil {
			t.Fatal(err)
		}
		out = append(out, udpClusters(udp)...)
	}
	return out
}

// udpClusters returns the clusters to which a filter sends datagrams: Envoy Gateway makes no other
// matcher.
func udpClusters(u *udpproxyv3.UdpProxyConfig) []string {
	route := &udpproxyv3.Route{}
	if a := u.GetMatcher().GetOnNoMatch().GetAction().GetTypedConfig(); a.MessageIs(route) && a.UnmarshalTo(route) == nil {
		return []string{route.GetCluster()}
	}
	return nil
}

// routes checks that routes without Tailscale backends keep their content and order, and that the
// routes of policies come before each of them.
func (c *inputCheck) routes() {
	c.Helper()
	if len(c.message.GetRoutes()) != len(c.answer.GetRoutes()) {
		c.Fatalf("want %d route configurations, got %d", len(c.message.GetRoutes()), len(c.answer.GetRoutes()))
	}
	for i, config := range c.message.GetRoutes() {
		current := c.answer.GetRoutes()[i]
		if len(config.GetVirtualHosts()) != len(current.GetVirtualHosts()) {
			c.Fatalf("%s: want %d virtual hosts, got %d", config.GetName(), len(config.GetVirtualHosts()), len(current.GetVirtualHosts()))
		}
		for j, host := range config.GetVirtualHosts() {
			c.host(host, current.GetVirtualHosts()[j])
		}
		rest, restNow := proto.CloneOf(config), proto.CloneOf(current)
		rest.VirtualHosts, restNow.VirtualHosts = nil, nil
		if !proto.Equal(rest, restNow) {
			c.Errorf("%s changes: %v, and was %v", config.GetName(), restNow, rest)
		}
	}
}

func (c *inputCheck) host(previous, updated *routev3.VirtualHost) {
	c.Helper()
	var policies, rest []*routev3.Route
	denied := map[string][]*routev3.Route{}
	for _, r := range updated.GetRoutes() {
		if strings.HasPrefix(r.GetName(), policyPrefix) {
			policies = append(policies, r)
			continue
		}
		denied[r.GetName()] = append(denied[r.GetName()], policies...)
		rest = append(rest, r)
	}
	if len(policies) > 0 && !c.policed {
		c.Errorf("%s: has routes of policies, but the snapshot has no policy", previous.GetName())
	}
	if len(rest) != len(previous.GetRoutes()) {
		c.Fatalf("%s: want %d routes, got %d", previous.GetName(), len(previous.GetRoutes()), len(rest))
	}
	for i, r := range previous.GetRoutes() {
		current := rest[i]
		if r.GetName() != current.GetName() {
			c.Fatalf("%s: want %s, got %s", previous.GetName(), r.GetName(), current.GetName())
		}
		if !c.isOurs(r.GetName()) && r.ValidateAll() == nil && !proto.Equal(r, current) {
			c.Errorf("%s names no Tailscale backend, and changes:\n%v\n%v", r.GetName(), r, current)
		}
		if !proto.Equal(r.GetMatch(), current.GetMatch()) {
			c.Errorf("%s has another match:\n%v\n%v", r.GetName(), r.GetMatch(), current.GetMatch())
		}
		if _, _, ok := parseRule(r.GetName()); ok && c.policed && !slices.ContainsFunc(denied[r.GetName()], func(d *routev3.Route) bool { return denies403(d, current) }) {
			c.Errorf("%s: no Deny before %s", previous.GetName(), r.GetName())
		}
	}
	restBefore, restAfter := proto.CloneOf(previous), proto.CloneOf(updated)
	restBefore.Routes, restAfter.Routes = nil, nil
	if !proto.Equal(restBefore, restAfter) {
		c.Errorf("%s changes: %v, and was %v", previous.GetName(), restAfter, restBefore)
	}
}

// denies403 reports whether a route denies exactly the requests that match another route and have
// the header of the policy's Deny.
func denies403(d, r *routev3.Route) bool {
	if d.GetDirectResponse().GetStatus() != 403 {
		return false
	}
	m := proto.CloneOf(d.GetMatch())
	n := len(m.GetHeaders())
	m.Headers = slices.DeleteFunc(m.GetHeaders(), func(h *routev3.HeaderMatcher) bool {
		return h.GetName() == deniedHeader && h.GetStringMatch().GetExact() == "yes" && !h.GetInvertMatch()
	})
	return len(m.GetHeaders()) == n-1 && proto.Equal(m, r.GetMatch())
}

// references checks that each named cluster exists, or was missing before.
func (c *inputCheck) references() {
	c.Helper()
	defined := map[string]bool{"": true, invalidCluster: true}
	for _, cluster := range c.answer.GetClusters() {
		if defined[cluster.GetName()] {
			c.Errorf("cluster %s occurs twice", cluster.GetName())
		}
		defined[cluster.GetName()] = true
	}
	previous := c.sends(c.message)
	for n := range c.sends(c.answer) {
		if !defined[n] && !previous[n] {
			c.Errorf("cluster %s is missing", n)
		}
	}
	// Other parts of the message, such as filters, may name a removed cluster.
	removed := map[string]bool{}
	for _, cluster := range c.message.GetClusters() {
		if !defined[cluster.GetName()] {
			removed[cluster.GetName()] = true
		}
	}
	if len(removed) == 0 {
		return
	}
	rest := proto.CloneOf(c.answer)
	rest.Clusters = nil
	rename(c.T, rest.ProtoReflect(), func(n string) string {
		if removed[n] {
			c.Errorf("cluster %s is removed, and still named", n)
		}
		return n
	})
}

// sends returns the clusters that routes and listeners name.
func (c *inputCheck) sends(r *pb.PostTranslateModifyRequest) map[string]bool {
	out := referenced(Resources{Routes: r.GetRoutes()})
	for _, l := range r.GetListeners() {
		for _, n := range sentBy(c.T, l) {
			out[n] = true
		}
	}
	return out
}

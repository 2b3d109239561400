// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"maps"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A speech is how backends of ours are spoken to: as the target's shape says.
type speech struct {
	tls, remote *ir.UpstreamTLS
}

// speeches of web and of db.
func speeches() map[string][2]speech {
	a, b := &ir.UpstreamTLS{ServerName: "a.example.com"}, &ir.UpstreamTLS{ServerName: "b.example.com"}
	plain, tls, other, remote, both := speech{}, speech{tls: a}, speech{tls: b}, speech{remote: a}, speech{tls: a, remote: b}
	return map[string][2]speech{
		"Plain": {plain, plain}, "TLS": {tls, tls}, "One": {tls, plain}, "OtherOne": {plain, tls}, "OtherName": {tls, other},
		"Remote": {remote, remote}, "RemoteOne": {remote, plain}, "OtherRemote": {plain, remote}, "Both": {both, both}, "BothOne": {plain, both}, "TLSAndRemote": {tls, remote},
	}
}

// backendsOf a rule: ours alone, several, and with others beside them.
func backendsOf() map[string][]ir.BackendRef {
	return map[string][]ir.BackendRef{
		"Alone":       {ours(0, "web", 1)},
		"Two":         {ours(0, "web", 1), ours(1, "db", 2)},
		"Service":     {ours(0, "web", 1), svc(1, 2)},
		"Backend":     {ours(0, "web", 1), other(1, 2)},
		"TwoServices": {ours(0, "web", 1), svc(1, 2), ours(2, "db", 1), svc(3, 1)},
		"All":         {ours(0, "web", 1), ours(1, "db", 1), svc(2, 2), other(3, 1)},
	}
}

// TestNeverPlaintext combines how backends are spoken to with what stands beside them, with
// how one is chosen, and with the PROXY protocol. Who speaks TLS gets no plaintext, and what
// Envoy Gateway made for its own backends they keep.
func TestNeverPlaintext(t *testing.T) {
	choices := map[string]struct {
		own, hash, pin, each bool
	}{"Any": {}, "Session": {own: true}, "Hash": {hash: true}, "Policy": {pin: true}, "Each": {each: true}, "SessionEach": {own: true, each: true}, "HashPolicy": {hash: true, pin: true}}
	n := 0
	for _, kind := range []ir.RouteKind{ir.KindHTTPRoute, ir.KindGRPCRoute, ir.KindTCPRoute, ir.KindTLSRoute} {
		for speaks, of := range speeches() {
			for with, refs := range backendsOf() {
				for choice, how := range choices {
					for _, proxy := range []bool{false, true} {
						for _, siblingTLS := range []bool{false, true} {
							n++
							p := plaintextCase{kind: kind, web: of[0], db: of[1], refs: refs, own: how.own, hash: how.hash, pin: how.pin, each: how.each, proxy: proxy, siblingTLS: siblingTLS}
							for _, problem := range p.problems(t) {
								t.Errorf("%s, %s, %s, %s, PROXY protocol: %t, siblings with TLS: %t: %s", kind, speaks, with, choice, proxy, siblingTLS, problem)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d combinations", n)
}

type plaintextCase struct {
	kind                 ir.RouteKind
	web, db              speech
	refs                 []ir.BackendRef
	own, hash, pin, each bool
	proxy, siblingTLS    bool
}

// problems of what becomes of the case.
func (p plaintextCase) problems(t *testing.T) []string {
	t.Helper()
	k := ruleKey{route: routeKey(p.kind, "app")}
	if !k.http() {
		k.rule = l4Rule
	}
	r := rule(p.refs...)
	r.Exclusive = p.own
	contents := ir.Contents{Routes: []*ir.Route{route(p.kind, "app", r)}, Targets: targets("web", "db")}
	for _, of := range contents.Targets {
		s := p.web
		if of.Key.Name == "db" {
			s = p.db
		}
		of.Shape.TLS, of.Shape.RemoteTLS = s.tls, s.remote
	}
	if p.pin {
		contents.Pinned = map[ir.RouteKey][]string{k.route: {""}}
	}
	in := p.message(k)
	before := map[string]*clusterv3.Cluster{}
	for _, c := range in.Clusters {
		before[c.GetName()] = proto.CloneOf(c)
	}
	out, _ := Translate(ir.NewSnapshot(contents), testSource, in)
	var problems []string
	if err := validate(out); err != nil {
		problems = append(problems, err.Error())
	}
	sent := p.sent(t, out)
	for _, c := range out.Clusters {
		if sent[c.GetName()] {
			problems = append(problems, p.problemsOf(t, contents, c, before)...)
		}
	}
	for name := range sent {
		if name != invalidCluster && !slices.ContainsFunc(out.Clusters, func(c *clusterv3.Cluster) bool { return c.GetName() == name }) {
			problems = append(problems, "cluster "+name+" is missing")
		}
	}
	return problems
}

// message that Envoy Gateway makes of the case.
func (p plaintextCase) message(k ruleKey) Resources {
	var fns []func(*clusterv3.Cluster)
	if p.proxy {
		fns = append(fns, proxied)
	}
	if p.siblingTLS && slices.ContainsFunc(p.refs, func(b ir.BackendRef) bool { return !b.Ours() }) {
		fns = append(fns, tlsSibling)
	}
	if p.hash {
		fns = append(fns, maglev)
	}
	action, clusters := to(k.cluster()), []*clusterv3.Cluster{egCluster(k.cluster(), fns...)}
	if p.each && len(p.refs) > 1 && k.http() {
		// A cluster for each backend, as where they have filters.
		clusters = nil
		var sent []string
		for _, b := range p.refs {
			clusters = append(clusters, egCluster(k.backend(b.Index), fns...))
			sent = append(sent, k.backend(b.Index)+"=1")
		}
		action = to(sent...)
	}
	if p.hash {
		action = hashed(action)
	}
	if !k.http() {
		return Resources{Clusters: clusters, Listeners: []*listenerv3.Listener{egTCP(strings.TrimSuffix(k.cluster(), "/rule/-1"), k.cluster())}}
	}
	return Resources{Clusters: clusters, Routes: egRoutes(egRoute(k.cluster()+"/match/0/www_example_com", prefix("/"), action))}
}

// sent are the clusters that anything is sent to.
func (p plaintextCase) sent(t *testing.T, r Resources) map[string]bool {
	t.Helper()
	out := referenced(r)
	for _, l := range r.Listeners {
		for _, f := range viewOf(t, Resources{Listeners: []*listenerv3.Listener{l}}).Sends {
			_, to, _ := strings.Cut(f, " > ")
			for _, c := range strings.Fields(to) {
				name, _, _ := strings.Cut(c, "=")
				out[name] = true
			}
		}
	}
	maps.DeleteFunc(out, func(name string, _ bool) bool { return name == "" })
	return out
}

// problemsOf a cluster: whose endpoints it has, and how it speaks to them.
func (p plaintextCase) problemsOf(t *testing.T, contents ir.Contents, c *clusterv3.Cluster, before map[string]*clusterv3.Cluster) []string {
	t.Helper()
	name, list := c.GetName(), c.GetEdsClusterConfig().GetServiceName()
	was := before[name]
	var problems []string
	outer, tls := socketOf(t, c.GetTransportSocket())
	if outer != p.proxy {
		problems = append(problems, name+": the PROXY protocol is lost, or came out of nowhere")
	}
	if !strings.HasPrefix(list, ir.OursPrefix) {
		// Envoy Gateway's own list, of its own backends.
		if was == nil || !proto.Equal(was.GetTransportSocket(), c.GetTransportSocket()) || !slices.EqualFunc(was.GetTransportSocketMatches(), c.GetTransportSocketMatches(), func(a, b *clusterv3.Cluster_TransportSocketMatch) bool { return proto.Equal(a, b) }) {
			problems = append(problems, name+": backends of Envoy Gateway's are spoken to in another way")
		}
		return problems
	}
	for _, of := range p.members(list, contents) {
		if of == nil {
			if p.siblingTLS || tls != "" {
				problems = append(problems, name+": a Service is spoken to in another way")
			}
			continue
		}
		want, remote := of.Shape.TLS, of.Shape.RemoteTLS
		switch {
		case want == nil && tls != "" || want != nil && tls != want.ServerName:
			problems = append(problems, name+": "+of.Key.Name+" is spoken to as "+tls)
		case remote == nil && len(c.GetTransportSocketMatches()) > 0:
			problems = append(problems, name+": other clusters are spoken to in another way for "+of.Key.Name)
		case remote == nil:
		case len(c.GetTransportSocketMatches()) != 1:
			problems = append(problems, name+": other clusters get no TLS for "+of.Key.Name)
		default:
			if _, as := socketOf(t, c.GetTransportSocketMatches()[0].GetTransportSocket()); as != remote.ServerName {
				problems = append(problems, name+": other clusters are spoken to as "+as)
			}
		}
	}
	return problems
}

// members of an endpoint list. Nil is a Service.
func (p plaintextCase) members(list string, contents ir.Contents) []*ir.Target {
	s := ir.NewSnapshot(contents)
	if k, err := ir.ParseClusterName(list); err == nil {
		return []*ir.Target{s.Target(k)}
	}
	var out []*ir.Target
	for _, b := range p.refs {
		if b.Ours() {
			out = append(out, s.Target(b.Target(p.kind)))
		} else {
			out = append(out, nil)
		}
	}
	return out
}

// socketOf a cluster or an endpoint: whether it begins with the PROXY protocol, and as whom it
// speaks TLS, which is empty for plaintext.
func socketOf(t *testing.T, s *corev3.TransportSocket) (proxy bool, tls string) {
	t.Helper()
	pp, ctx := &proxyprotocolv3.ProxyProtocolUpstreamTransport{}, &tlsv3.UpstreamTlsContext{}
	switch a := s.GetTypedConfig(); {
	case a.MessageIs(pp):
		if err := a.UnmarshalTo(pp); err != nil {
			t.Fatal(err)
		}
		_, tls = socketOf(t, pp.GetTransportSocket())
		return true, tls
	case a.MessageIs(ctx):
		if err := a.UnmarshalTo(ctx); err != nil {
			t.Fatal(err)
		}
		return false, ctx.GetSni()
	}
	return false, ""
}

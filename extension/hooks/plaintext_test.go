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

// A backendProtocol describes the protocol of a Tailscale backend, which the target's shape states.
type backendProtocol struct {
	tls, remote *ir.UpstreamTLS
}

// backendProtocols returns the combinations for web and db.
func backendProtocols() map[string][2]backendProtocol {
	a, b := &ir.UpstreamTLS{ServerName: "a.example.com"}, &ir.UpstreamTLS{ServerName: "b.example.com"}
	plain, tls, other, remote, both := backendProtocol{}, backendProtocol{tls: a}, backendProtocol{tls: b}, backendProtocol{remote: a}, backendProtocol{tls: a, remote: b}
	return map[string][2]backendProtocol{
		"Plain": {plain, plain}, "TLS": {tls, tls}, "One": {tls, plain}, "OtherOne": {plain, tls}, "OtherName": {tls, other},
		"Remote": {remote, remote}, "RemoteOne": {remote, plain}, "OtherRemote": {plain, remote}, "Both": {both, both}, "BothOne": {plain, both}, "TLSAndRemote": {tls, remote},
	}
}

// backendsOf returns the backends of a rule: one Tailscale backend, several, and with siblings.
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

// TestNeverPlaintext combines the protocols of backends with siblings, with load balancing, and
// with the PROXY protocol. TLS backends get no plaintext, and siblings keep Envoy Gateway's
// settings.
func TestNeverPlaintext(t *testing.T) {
	choices := map[string]struct {
		own, hash, pin, perBackend bool
	}{"Any": {}, "Session": {own: true}, "Hash": {hash: true}, "Policy": {pin: true}, "Each": {perBackend: true}, "SessionEach": {own: true, perBackend: true}, "HashPolicy": {hash: true, pin: true}}
	n := 0
	for _, kind := range []ir.RouteKind{ir.KindHTTPRoute, ir.KindGRPCRoute, ir.KindTCPRoute, ir.KindTLSRoute} {
		for speaks, protocols := range backendProtocols() {
			for backends, refs := range backendsOf() {
				for choice, flags := range choices {
					for _, proxy := range []bool{false, true} {
						for _, siblingTLS := range []bool{false, true} {
							n++
							p := plaintextCase{kind: kind, web: protocols[0], db: protocols[1], refs: refs, own: flags.own, hash: flags.hash, pin: flags.pin, perBackend: flags.perBackend, proxy: proxy, siblingTLS: siblingTLS}
							for _, problem := range p.problems(t) {
								t.Errorf("%s, %s, %s, %s, PROXY protocol: %t, siblings with TLS: %t: %s", kind, speaks, backends, choice, proxy, siblingTLS, problem)
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
	kind                       ir.RouteKind
	web, db                    backendProtocol
	refs                       []ir.BackendRef
	own, hash, pin, perBackend bool
	proxy, siblingTLS          bool
}

// problems returns the mistakes in the result of the case.
func (p plaintextCase) problems(t *testing.T) []string {
	t.Helper()
	k := ruleKey{route: routeKey(p.kind, "app")}
	if !k.http() {
		k.rule = l4Rule
	}
	r := rule(p.refs...)
	r.Exclusive = p.own
	contents := ir.Contents{Routes: []*ir.Route{route(p.kind, "app", r)}, Targets: targets("web", "db")}
	for _, target := range contents.Targets {
		s := p.web
		if target.Key.Name == "db" {
			s = p.db
		}
		target.Shape.TLS, target.Shape.RemoteTLS = s.tls, s.remote
		target.Transport = target.Shape.Transport()
	}
	if p.pin {
		contents.Pinned = map[ir.RouteKey][]string{k.route: {""}}
	}
	resources := p.message(k)
	originals := map[string]*clusterv3.Cluster{}
	for _, c := range resources.Clusters {
		originals[c.GetName()] = proto.CloneOf(c)
	}
	out, _ := Translate(ir.NewSnapshot(contents), testSource, resources)
	var problems []string
	if err := validate(out); err != nil {
		problems = append(problems, err.Error())
	}
	destinations := p.sent(t, out)
	for _, c := range out.Clusters {
		if destinations[c.GetName()] {
			problems = append(problems, p.problemsOf(t, contents, c, originals)...)
		}
	}
	for name := range destinations {
		if name != invalidCluster && !slices.ContainsFunc(out.Clusters, func(c *clusterv3.Cluster) bool { return c.GetName() == name }) {
			problems = append(problems, "cluster "+name+" is missing")
		}
	}
	return problems
}

// message returns the resources that Envoy Gateway makes of the case.
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
	if p.perBackend && len(p.refs) > 1 && k.http() {
		// Each backend has a cluster, as with filters on backends.
		clusters = nil
		var destinations []string
		for _, b := range p.refs {
			clusters = append(clusters, egCluster(k.backend(b.Index), fns...))
			destinations = append(destinations, k.backend(b.Index)+"=1")
		}
		action = to(destinations...)
	}
	if p.hash {
		action = hashed(action)
	}
	if !k.http() {
		return Resources{Clusters: clusters, Listeners: []*listenerv3.Listener{egTCP(strings.TrimSuffix(k.cluster(), "/rule/-1"), k.cluster())}}
	}
	return Resources{Clusters: clusters, Routes: egRoutes(egRoute(k.cluster()+"/match/0/www_example_com", prefix("/"), action))}
}

// sent returns the clusters that get requests.
func (p plaintextCase) sent(t *testing.T, r Resources) map[string]bool {
	t.Helper()
	out := referenced(r)
	for _, l := range r.Listeners {
		for _, f := range viewOf(t, Resources{Listeners: []*listenerv3.Listener{l}}).Sends {
			_, clusters, _ := strings.Cut(f, " > ")
			for _, c := range strings.Fields(clusters) {
				name, _, _ := strings.Cut(c, "=")
				out[name] = true
			}
		}
	}
	maps.DeleteFunc(out, func(name string, _ bool) bool { return name == "" })
	return out
}

// problemsOf returns the mistakes of a cluster in its endpoints and in their protocol.
func (p plaintextCase) problemsOf(t *testing.T, contents ir.Contents, c *clusterv3.Cluster, originals map[string]*clusterv3.Cluster) []string {
	t.Helper()
	name, list := c.GetName(), c.GetEdsClusterConfig().GetServiceName()
	original := originals[name]
	var problems []string
	outer, tls := socketOf(t, c.GetTransportSocket())
	if outer != p.proxy {
		problems = append(problems, name+": the PROXY protocol is lost or added")
	}
	if !strings.HasPrefix(list, ir.OursPrefix) {
		// Envoy Gateway's own list, of the siblings.
		if original == nil || !proto.Equal(original.GetTransportSocket(), c.GetTransportSocket()) || !slices.EqualFunc(original.GetTransportSocketMatches(), c.GetTransportSocketMatches(), func(a, b *clusterv3.Cluster_TransportSocketMatch) bool { return proto.Equal(a, b) }) {
			problems = append(problems, name+": siblings have another protocol")
		}
		return problems
	}
	list, tuning, ok := ir.ParseTuning(list)
	if !ok {
		return append(problems, name+": list "+list+" has no tuning that can be read")
	}
	for _, target := range p.members(list, contents) {
		if target == nil && tuning.Transport != "" || target != nil && tuning.Transport != target.Transport {
			problems = append(problems, name+": its list waits for another transport")
		}
		if target == nil {
			if p.siblingTLS || tls != "" {
				problems = append(problems, name+": a Service has another protocol")
			}
			continue
		}
		want, remote := target.Shape.TLS, target.Shape.RemoteTLS
		switch {
		case want == nil && tls != "" || want != nil && tls != want.ServerName:
			problems = append(problems, name+": "+target.Key.Name+" has protocol "+tls)
		case remote == nil && len(c.GetTransportSocketMatches()) > 0:
			problems = append(problems, name+": other clusters have another protocol for "+target.Key.Name)
		case remote == nil:
		case len(c.GetTransportSocketMatches()) != 1:
			problems = append(problems, name+": other clusters have no TLS for "+target.Key.Name)
		default:
			if _, as := socketOf(t, c.GetTransportSocketMatches()[0].GetTransportSocket()); as != remote.ServerName {
				problems = append(problems, name+": other clusters have protocol "+as)
			}
		}
	}
	return problems
}

// members returns the targets in an endpoint list. Nil stands for a Service.
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

// socketOf describes the transport socket of a cluster or an endpoint: whether it sends the PROXY
// protocol, and the server name for TLS, which is empty for plaintext.
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

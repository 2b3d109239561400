// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
)

// buildEndpoints builds the target of a TailscaleEndpoints. Its endpoints are the egress
// proxies, or hosts outside of the tailnet.
func (v *view) buildEndpoints(t *ir.Target, n types.NamespacedName) {
	spec := v.endpoints[v.lookup(refEndpoints, n)]
	if spec == nil {
		t.Missing, t.Problem = true, missing(parse.KindTailscaleEndpoints, n)
		return
	}
	t.Shape = ir.Shape{HealthThreshold: parse.DefaultHealthThreshold, HTTP2: t.Key.Protocol == ir.ProtocolGRPC, OutlierDetection: parse.OutlierDetection(t.Key, nil)}
	set := v.proxySet(n)
	if set == nil {
		t.Problem = fmt.Sprintf("TailscaleEndpoints %s has no proxies yet; look at its conditions", n)
		return
	}
	udp := t.Key.Protocol == ir.ProtocolUDP
	var targets []tailnetv1alpha1.ProxySetTarget
	for _, target := range set.Targets {
		if target.Port == t.Key.Port && (target.Protocol == string(gatewayv1alpha1.EndpointProtocolUDP)) == udp && !v.attached(n, target) {
			targets = append(targets, target)
		}
	}
	if len(targets) == 0 {
		t.Missing = true
		t.Problem = fmt.Sprintf("TailscaleEndpoints %s has no endpoint with port %d of %s; add one to spec.endpoints, or correct the backendRefs of the routes that name it", n, t.Key.Port, protocolOf(t.Key))
		return
	}
	slices.SortFunc(targets, func(a, b tailnetv1alpha1.ProxySetTarget) int { return cmp.Compare(a.Name, b.Name) })

	problem := ""
	sources := make([]source, 0, len(targets))
	for _, target := range targets {
		s := source{name: target.Name, priority: ir.PriorityLocal, weight: uint64(max(target.Weight, 1))}
		name, _, _ := strings.Cut(target.Name, "/")
		s.offline = v.offline[n][name]
		wrong := ""
		if target.Address != "" {
			s.endpoints, wrong = v.directEndpoints(t, n.Namespace, target.Address)
		} else {
			s.endpoints, s.proxied = v.egressPods(n.Namespace, set, target.ProxyPort), true
		}
		problem = cmp.Or(problem, wrong)
		sources = append(sources, s)
	}
	if problem = cmp.Or(endpointsShape(t, spec, targets), problem); t.Problem != "" {
		return
	}
	if v.locate(t, sources); empty(t.Localities) {
		t.Problem = fmt.Sprintf("TailscaleEndpoints %s: %s", n, cmp.Or(v.beyond, problem, "no egress proxy is ready; look at its conditions"))
	}
}

// attached reports whether a target belongs to the failover of a TailscaleServices, and is
// therefore not an endpoint that routes may name.
func (v *view) attached(n types.NamespacedName, t tailnetv1alpha1.ProxySetTarget) bool {
	name, _, _ := strings.Cut(t.Name, "/")
	_, ok := v.groups[grouped{kind: refAttachments, NamespacedName: v.lookup(refAttachment, ir.Sibling(n, name))}]
	return ok
}

// directEndpoints returns the endpoints of a target that needs no proxy.
func (v *view) directEndpoints(t *ir.Target, ns, address string) ([]zonedEndpoint, string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Sprintf("%q is not host:port; correct externalTarget", address)
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Sprintf("%q has no port; correct externalTarget", address)
	}
	return v.direct(t, endpointsOf(ns), host, int32(p))
}

// endpointsShape adds the settings of the endpoints behind targets to the shape. It returns
// a problem if the settings exclude each other, because the endpoints share a cluster.
func endpointsShape(t *ir.Target, spec *gatewayv1alpha1.TailscaleEndpointsSpec, targets []tailnetv1alpha1.ProxySetTarget) string {
	byName := map[string]gatewayv1alpha1.Endpoint{}
	for _, e := range egress.Expand(spec.Endpoints) {
		byName[e.Name] = e
	}
	var names []string
	https, grpc := 0, 0
	for _, target := range targets {
		name, _, _ := strings.Cut(target.Name, "/")
		e := byName[name]
		if t.Shape.HealthCheck == nil && e.HealthCheck != nil {
			t.Shape.HealthCheck = parse.HealthCheck(t.Key, e.HealthCheck, nil, parse.HostName(e))
		}
		switch gatewayv1alpha1.EndpointProtocol(target.Protocol) {
		case gatewayv1alpha1.EndpointProtocolHTTPS:
			https++
			names = append(names, parse.HostName(e))
		case gatewayv1alpha1.EndpointProtocolGRPC:
			grpc++
		}
	}
	if t.Key.Protocol != ir.ProtocolHTTP && t.Key.Protocol != ir.ProtocolGRPC {
		return ""
	}
	t.Shape.HTTP2 = t.Shape.HTTP2 || grpc == len(targets)
	if https == 0 {
		return ""
	}
	if https < len(targets) {
		t.Problem = fmt.Sprintf("some endpoints of port %d speak HTTPS and others do not; give them one protocol or separate ports", t.Key.Port)
		return t.Problem
	}
	t.Shape.TLS = &ir.UpstreamTLS{}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 1 {
		t.Shape.TLS.ServerName = names[0]
	}
	return ""
}

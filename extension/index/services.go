// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/namesake"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
	"github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// build builds a target. old is its previous state, or nil.
func (v *view) build(k ir.TargetKey, old *ir.Target) *ir.Target {
	t := &ir.Target{Key: k}
	n := types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
	if k.Kind == ir.TargetFailover {
		v.buildFailover(t, n)
		t.Transport = t.Shape.Transport()
		return t
	}
	if k.Kind == ir.TargetEndpoints {
		v.creation = v.created[ref{kind: refEndpoints, NamespacedName: n}]
		v.buildEndpoints(t, n)
	} else {
		v.creation = v.created[ref{kind: refServices, NamespacedName: n}]
		v.buildServices(t, n)
	}
	tls, problem, unapplied := v.tlsOf(k, old)
	t.TLSPolicies = unapplied
	if tls != nil {
		// The policy applies to all endpoints: proxies of other clusters have the same
		// certificate. It also applies while there is no endpoint: the cluster is ready then.
		t.Shape.TLS, t.Shape.RemoteTLS = tls, nil
	}
	t.Transport = t.Shape.Transport()
	switch {
	case t.Problem != "":
		t.Refused = nil
	case problem != "":
		// Sending requests without TLS would ignore the policy.
		t.Problem, t.Localities, t.Refused = problem, nil, nil
	}
	return t
}

// buildServices builds the target of a TailscaleServices: local backends, and then other
// clusters.
func (v *view) buildServices(t *ir.Target, n types.NamespacedName) {
	spec := v.services[v.lookup(refServices, n)]
	if spec == nil {
		t.Missing, t.Problem = true, missing(parse.KindTailscaleServices, n)
		return
	}
	spec, problem := v.filled(n, t.Key.Port, spec)
	if problem != "" {
		t.Missing, t.Problem = true, fmt.Sprintf("TailscaleServices %s: %s", n, problem)
		return
	}
	t.Shape = parse.ServicesShape(t.Key, spec)
	backends, problem := answering(spec, t.Key)
	if problem != "" {
		t.Missing, t.Problem = true, fmt.Sprintf("TailscaleServices %s: %s", n, problem)
		return
	}
	sources, problem := v.localSources(t, n.Namespace, spec, backends)
	sources, remote := v.remoteSources(t, n, spec, sources)
	t.Delays = parse.Delays(spec.LoadBalancing)
	v.locate(t, sources)
	if !empty(t.Localities) {
		return
	}
	t.Problem = fmt.Sprintf("TailscaleServices %s: %s", n, cmp.Or(v.beyond, problem, remote, "no backend has a weight above 0; give one a weight"))
}

// filled returns a spec whose empty fields have the values of the Service with the same
// name, or the problem for a route that names a port.
func (v *view) filled(n types.NamespacedName, port int32, spec *gatewayv1alpha1.TailscaleServicesSpec) (*gatewayv1alpha1.TailscaleServicesSpec, string) {
	svc := namesake.Service{Namespace: n.Namespace, Name: n.Name}
	if namesake.Answers(*spec) {
		if s := v.kubeServices[v.lookup(refService, n)]; s != nil {
			svc.Exists = true
			for _, p := range s.Ports {
				if p.Protocol == corev1.ProtocolTCP {
					svc.Ports = append(svc.Ports, p.Port)
				}
			}
		}
	}
	out, problem := namesake.Fill(*spec, svc)
	switch {
	case problem == nil:
		return &out, ""
	case problem.Missing && slices.Contains(spec.VIPService.Ports, service.Port(port)):
		// The backend keeps its locality, as any backend does: other clusters may answer.
		out.Backends = []gatewayv1alpha1.Backend{{Name: n.Name, Port: port}}
		return &out, ""
	}
	return nil, problem.Message
}

// answering returns the backends of a port, as proxies select them
// (functions/tailscaleservices/ports), except that there may be several.
func answering(spec *gatewayv1alpha1.TailscaleServicesSpec, k ir.TargetKey) ([]gatewayv1alpha1.Backend, string) {
	if service.AllPorts(*spec) {
		out := slices.Clone(spec.Backends)
		for i := range out {
			out[i].Port = k.Port
		}
		return out, ""
	}
	wanted := service.Port(k.Port)
	switch {
	case k.Protocol == ir.ProtocolUDP:
		return nil, "its ports are of TCP; set spec.vipService.ports to " + string(gatewayv1alpha1.ServicePortAll) + " for UDP"
	case !slices.Contains(spec.VIPService.Ports, wanted):
		return nil, fmt.Sprintf("it has no port %d; add %s to spec.vipService.ports, or correct the backendRefs of the routes that name it", k.Port, wanted)
	}
	var named []gatewayv1alpha1.Backend
	for _, i := range service.Answering(spec.Backends, k.Port) {
		named = append(named, spec.Backends[i])
	}
	if len(named) == 0 {
		return nil, fmt.Sprintf("no backend answers port %d; add one to spec.backends with vipPort %d", k.Port, k.Port)
	}
	return named, ""
}

// localSources returns the sources of backends, and the problem of the first that has no
// endpoint.
func (v *view) localSources(t *ir.Target, ns string, spec *gatewayv1alpha1.TailscaleServicesSpec, backends []gatewayv1alpha1.Backend) (out []source, problem string) {
	h2c, near, used := true, []uint32{}, map[string]bool{}
	ranks := priorities(spec.LoadBalancing, backends)
	for i, b := range backends {
		s := source{name: b.Name, priority: ranks[i], weight: weight(spec.LoadBalancing, b)}
		if used[b.Name] {
			// A name identifies one locality, but a Service may have two ports.
			s.name = fmt.Sprintf("%s/%d", b.Name, i)
		}
		used[b.Name] = true
		var wrong string
		var h2 bool
		switch {
		case b.Kind == gatewayv1alpha1.BackendKindGateway:
			// The route may attach to the same Gateway.
			wrong = fmt.Sprintf("backend %s is a TailscaleGateway, and a request could go in a circle; have the route name what the Gateway's routes name", b.Name)
		case b.ProxyProtocol != "":
			wrong = fmt.Sprintf("backend %s expects the PROXY protocol, which a Gateway does not send; remove proxyProtocol", b.Name)
		case b.Protocol == gatewayv1alpha1.BackendProtocolHTTPS && t.Key.Protocol != ir.ProtocolTCP && len(v.tlsPolicies(t.Key)) == 0:
			// Envoy would send requests without TLS. The verification is the policy's to configure. The
			// bytes of a TCPRoute or TLSRoute are the client's, with its TLS.
			wrong = fmt.Sprintf("backend %s has protocol HTTPS, for which a Gateway needs a BackendTLSPolicy; create one whose targetRefs name TailscaleServices %s", b.Name, t.Key.Name)
		case b.Kind == gatewayv1alpha1.BackendKindExternal:
			s.endpoints, wrong = v.direct(t, refgrant.TailscaleServices(ns), b.Host, b.Port)
		default:
			s.endpoints, h2, wrong = v.serviceEndpoints(types.NamespacedName{Namespace: ns, Name: b.Name}, b.Port, protocolOf(t.Key))
		}
		if s.weight > 0 {
			near = append(near, v.preferZone(ns, b))
		}
		h2c = h2c && h2
		problem = cmp.Or(problem, wrong)
		out = append(out, s)
	}
	if len(near) > 0 && slices.Min(near) > 0 {
		t.Shape.PreferZone = slices.Max(near)
	}
	t.Shape.HTTP2 = t.Shape.HTTP2 || h2c && t.Key.Protocol == ir.ProtocolHTTP
	return out, problem
}

// preferZone returns the PreferZone of a backend's Service. Other backends have no zone. A target
// prefers Envoy's zone if all of its Services do, as Envoy Gateway decides for each cluster.
func (v *view) preferZone(ns string, b gatewayv1alpha1.Backend) uint32 {
	if b.Kind != "" && b.Kind != gatewayv1alpha1.BackendKindService {
		return 0
	}
	if s := v.kubeServices[v.lookup(refService, types.NamespacedName{Namespace: ns, Name: b.Name})]; s != nil {
		return s.PreferZone
	}
	return 0
}

// protocolOf returns the transport protocol of a target.
func protocolOf(k ir.TargetKey) corev1.Protocol {
	if k.Protocol == ir.ProtocolUDP {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

// weight returns the weight of a backend.
func weight(lb *gatewayv1alpha1.LoadBalancing, b gatewayv1alpha1.Backend) uint64 {
	return uint64(max(service.Weight(lb, b), 0))
}

// priorities returns the priorities of backends, from 0 without gaps: those of the spec, or
// with the strategy failover those of its order. Backends that the order does not name come
// last.
func priorities(lb *gatewayv1alpha1.LoadBalancing, backends []gatewayv1alpha1.Backend) []uint32 {
	wanted := make([]int32, len(backends))
	for i, b := range backends {
		wanted[i] = service.Priority(lb, b)
	}
	used := []int32{}
	for i, w := range wanted {
		if weight(lb, backends[i]) > 0 {
			used = append(used, w)
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	out := make([]uint32, len(backends))
	for i, w := range wanted {
		at, _ := slices.BinarySearch(used, w)
		out[i] = uint32(at)
	}
	return out
}

// remoteSources appends other clusters to local sources: with a later priority, or with
// affinity Global with the same priority, where each cluster has the weight of all local
// sources together. A cluster that several TailscaleEndpoints lead to counts once. A cluster that
// drains comes after others, and so does, while this cluster drains, one that does not serve.
func (v *view) remoteSources(t *ir.Target, n types.NamespacedName, spec *gatewayv1alpha1.TailscaleServicesSpec, local []source) (out []source, problem string) {
	k := t.Key
	attachments := v.attachments.sorted(v.lookup(refAttachments, n))
	if len(attachments) == 0 || k.Protocol == ir.ProtocolUDP {
		return local, ""
	}
	https := slices.Contains(spec.VIPService.Ports, service.Port(service.PortHTTPS))
	if service.TerminatesTLS(spec.TLS, https, k.Port) {
		i := slices.IndexFunc(attachments, func(a *tailnetv1alpha1.ServiceAttachment) bool { return a.Spec.DNSName != "" })
		if i < 0 {
			return local, fmt.Sprintf("other clusters end TLS at port %d, and the service's DNS name, which their certificates are for, is not known yet; look at the conditions of TailscaleServices %s", k.Port, n)
		}
		t.Shape.RemoteTLS = &ir.UpstreamTLS{ServerName: ir.CanonicalHost(attachments[i].Spec.DNSName)}
	}
	v.drains = slices.ContainsFunc(attachments, func(a *tailnetv1alpha1.ServiceAttachment) bool { return a.Spec.Drain })
	ways := map[tailnetv1alpha1.ServiceName]uint64{}
	for _, a := range attachments {
		ways[a.Spec.ServiceName]++
	}
	multiple := uint64(1)
	for _, c := range ways {
		multiple = lcm(multiple, c)
	}
	behind, whole, equal := uint32(0), uint64(0), global(spec.LoadBalancing)
	out = slices.Clone(local)
	for i, s := range out {
		if s.weight > 0 {
			behind = max(behind, s.priority+1)
		}
		if s.priority == ir.PriorityLocal {
			whole += s.weight
		}
		if equal {
			out[i].weight *= multiple
		}
	}
	whole = max(whole, 1)
	if equal {
		behind = ir.PriorityLocal
	} else {
		behind, whole = max(behind, ir.PriorityRemote), 1
	}
	for _, a := range attachments {
		s := source{name: a.Name, priority: behind, remote: true, cluster: a.Spec.ClusterID, weight: whole * multiple / ways[a.Spec.ServiceName]}
		if v.drains && !a.Spec.Drain || a.Spec.Draining {
			s.priority++
		}
		p := v.proxySet(ir.Sibling(n, a.Spec.Endpoints))
		i := -1
		if p != nil {
			name := fmt.Sprintf("%s/%d", a.Name, k.Port)
			i = slices.IndexFunc(p.Targets, func(t tailnetv1alpha1.ProxySetTarget) bool { return t.Name == name && t.ProxyPort != 0 })
		}
		if i < 0 {
			problem = cmp.Or(problem, fmt.Sprintf("TailscaleEndpoints %s has no port for ServiceAttachment %s yet; look at its condition EgressReady", a.Spec.Endpoints, a.Name))
		} else {
			s.endpoints = v.egressPods(n.Namespace, p, p.Targets[i].ProxyPort)
		}
		out = append(out, s)
	}
	return out, problem
}

// global reports whether other clusters have the same priority as this one.
func global(lb *gatewayv1alpha1.LoadBalancing) bool {
	if lb == nil {
		return false
	}
	return lb.Affinity == gatewayv1alpha1.AffinityGlobal || lb.FailoverPolicy != nil && !ptr.Deref(lb.FailoverPolicy.PreferLocal, true)
}

// egressPods returns the egress pods of a TailscaleEndpoints at one of their ports.
func (v *view) egressPods(ns string, p *tailnetv1alpha1.ProxySetSpec, port int32) []zonedEndpoint {
	var out []zonedEndpoint
	for _, m := range p.Sets {
		if m.Direction == tailnetv1alpha1.DirectionEgress {
			out = append(out, v.proxies(types.NamespacedName{Namespace: ns, Name: names.Service(m.Name)}, port)...)
		}
	}
	return out
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// failbackDelay is the default of the schema, for objects that were not validated by it.
const failbackDelay = 60 * time.Second

// assignTakers returns a port with the backends that answer it. With an error, which is for the
// user, it has only the backend that should receive most of it.
func assignTakers(spec gatewayv1alpha1.TailscaleServicesSpec, t takers) (Assignment, *SpecError) {
	out := Assignment{Port: t.port, Backend: spec.Backends[preferred(spec, t.backends)], Alone: len(t.backends) > 1}
	if len(t.backends) == 1 {
		return out, nil
	}
	weighed := slices.DeleteFunc(slices.Clone(t.backends), func(i int) bool {
		return rules.Weight(spec.LoadBalancing, spec.Backends[i]) == 0
	})
	if len(weighed) == 0 {
		return out, invalidBackends("%s all answer port tcp:%d, and have the weight 0; give one of them a weight", fields(t.backends), t.port)
	}
	if len(weighed) > tailnetv1alpha1.MaxAttachmentShares {
		return out, unsupported("%d backends answer port tcp:%d, and proxies balance up to %d; remove some", len(weighed), t.port, tailnetv1alpha1.MaxAttachmentShares)
	}
	first := spec.Backends[weighed[0]]
	for _, i := range weighed {
		b := spec.Backends[i]
		if protocolOf(b) != protocolOf(first) || b.ProxyProtocol != first.ProxyProtocol {
			return out, invalidBackends("%s all answer port tcp:%d; give them the same protocol and proxyProtocol, or each a different vipPort", fields(t.backends), t.port)
		}
	}
	out.Alone = false
	out.Backend = spec.Backends[preferred(spec, weighed)]
	if len(weighed) > 1 {
		for _, i := range weighed {
			out.Shares = append(out.Shares, Share{Backend: spec.Backends[i]})
		}
	}
	return out, nil
}

// onlyGateways reports whether all backends are Gateways.
func onlyGateways(spec gatewayv1alpha1.TailscaleServicesSpec) bool {
	return !slices.ContainsFunc(spec.Backends, func(b gatewayv1alpha1.Backend) bool { return b.Kind != gatewayv1alpha1.BackendKindGateway })
}

// Strategy returns the strategy of a spec. One whose backends are all Gateways has none: their routes
// balance requests.
func Strategy(spec gatewayv1alpha1.TailscaleServicesSpec) gatewayv1alpha1.Strategy {
	if spec.LoadBalancing == nil || onlyGateways(spec) {
		return gatewayv1alpha1.StrategyRoundRobin
	}
	return cmp.Or(spec.LoadBalancing.Strategy, gatewayv1alpha1.StrategyRoundRobin)
}

// protocolOf returns the protocol that proxies speak to a backend.
func protocolOf(b gatewayv1alpha1.Backend) gatewayv1alpha1.BackendProtocol {
	return cmp.Or(b.Protocol, gatewayv1alpha1.BackendProtocolTCP)
}

// checkNames returns an error if spec.loadBalancing names a backend that does not exist. Its share
// would silently go to others. It says nothing about a service whose only backends are Gateways: their
// routes balance requests.
func checkNames(spec gatewayv1alpha1.TailscaleServicesSpec) *SpecError {
	lb := spec.LoadBalancing
	if lb == nil || onlyGateways(spec) {
		return nil
	}
	exists := func(name string) bool {
		return slices.ContainsFunc(spec.Backends, func(b gatewayv1alpha1.Backend) bool { return b.Name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(lb.Weights)) {
		if !exists(name) {
			return invalidBackends("spec.loadBalancing.weights has %q, which is the name of no backend; correct it, or remove it", name)
		}
	}
	if lb.Failover == nil {
		return nil
	}
	for _, name := range append([]gatewayv1alpha1.BackendName{lb.Failover.Primary}, lb.Failover.Secondary...) {
		if !exists(string(name)) {
			return invalidBackends("spec.loadBalancing.failover has %q, which is the name of no backend; correct it, or remove it", name)
		}
	}
	return nil
}

// proxyProtocols maps names to versions of the PROXY protocol. The version without a name is 0.
var proxyProtocols = map[gatewayv1alpha1.ProxyProtocol]int32{
	gatewayv1alpha1.ProxyProtocolV1: 1,
	gatewayv1alpha1.ProxyProtocolV2: 2,
}

// Attached returns the port of an attachment by which proxies serve a port.
func (a Assignment) Attached(lb *gatewayv1alpha1.LoadBalancing) tailnetv1alpha1.AttachmentPort {
	out := tailnetv1alpha1.AttachmentPort{
		Port:          a.Port,
		Backend:       &tailnetv1alpha1.AttachmentBackend{Host: a.Address.Host, Port: a.Address.Port},
		TLS:           a.TLS,
		ProxyProtocol: proxyProtocols[a.Backend.ProxyProtocol],
	}
	out.Backends, out.Strategy = sharesOf(lb, a)
	switch a.Backend.Protocol {
	case gatewayv1alpha1.BackendProtocolHTTP:
		out.Protocol = tailnetv1alpha1.AttachmentProtocolHTTP
	case gatewayv1alpha1.BackendProtocolHTTPS:
		// Agents of earlier versions would forward bytes to this backend, without TLS.
		out.Protocol, out.Backend = tailnetv1alpha1.AttachmentProtocolHTTPS, nil
	case gatewayv1alpha1.BackendProtocolTCP:
	}
	return out
}

// sharesOf returns the backends among which proxies balance a port, and how. The strategies weighted
// and failover are weights and priorities. A port with one backend has none, unless the backend has the
// protocol HTTPS.
func sharesOf(lb *gatewayv1alpha1.LoadBalancing, a Assignment) ([]tailnetv1alpha1.AttachmentShare, tailnetv1alpha1.AttachmentStrategy) {
	if share := a.secured(); len(a.Shares) == 0 && len(share) > 0 {
		return []tailnetv1alpha1.AttachmentShare{{AttachmentBackend: a.Address, Weight: 1, TLS: backendTLS(share[0])}}, ""
	}
	if len(a.Shares) == 0 {
		return nil, ""
	}
	out := make([]tailnetv1alpha1.AttachmentShare, 0, len(a.Shares))
	for _, sh := range a.Shares {
		entry := tailnetv1alpha1.AttachmentShare{
			AttachmentBackend: sh.Address,
			Weight:            int32(rules.Weight(lb, sh.Backend)),
			Priority:          rules.Priority(lb, sh.Backend),
			TLS:               backendTLS(sh),
		}
		if primary(lb, sh.Backend) {
			entry.FailbackDelay = ptr.To(ptr.Deref(lb.Failover.FailbackDelay, metav1.Duration{Duration: failbackDelay}))
		}
		out = append(out, entry)
	}
	if lb != nil && lb.Strategy == gatewayv1alpha1.StrategyLeastConnections {
		return out, tailnetv1alpha1.AttachmentStrategyLeastConnections
	}
	return out, ""
}

// primary reports whether a backend is the primary of the strategy failover.
func primary(lb *gatewayv1alpha1.LoadBalancing, b gatewayv1alpha1.Backend) bool {
	return lb != nil && lb.Strategy == gatewayv1alpha1.StrategyFailover && lb.Failover != nil && string(lb.Failover.Primary) == b.Name
}

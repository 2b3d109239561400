// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package discovery plans the search of a tailnet for the targets of a TailscaleEndpoints, and makes
// endpoints of what it finds.
package discovery

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// Prefixes of the names of discovered endpoints: of services, and of devices whose names begin with
// one of the two prefixes.
const (
	prefixService = "svc-"
	prefixDevice  = "ts-device"
)

// nameDiscovery ends the name of the Discovery.
const nameDiscovery = "discovery"

// MaxResults is the maximum number of entries of a Discovery. Each becomes a Service, and
// Crossplane sends all of them to the function in one message of at most 4 MiB.
const MaxResults = 512

// Facts are what a search follows from.
type Facts struct {
	Owner compose.Owner
	Spec  gatewayv1alpha1.TailscaleEndpointsSpec

	// Discovery is nil if there is none.
	Discovery *tailnetv1alpha1.Discovery

	// NodeIDs are those of the TailscaleEndpoints' machines.
	NodeIDs map[string]bool
}

// A Plan is a search of the tailnet, and its results.
type Plan struct {
	Facts

	// results are the devices and services by the name of their endpoint.
	results map[string]tailnetv1alpha1.Discovered
}

// New returns the search of a spec, and the results of the observed Discovery.
func New(f Facts) Plan { return Plan{Facts: f, results: f.found()} }

// Wanted reports whether there is a search.
func (p Plan) Wanted() bool { return p.Spec.AutoDiscovery != nil }

// Compose returns the Discovery that searches the tailnet for endpoints.
func (p Plan) Compose() *tailnetv1alpha1.Discovery {
	a := p.Spec.AutoDiscovery
	d := &tailnetv1alpha1.Discovery{
		ObjectMeta: metav1.ObjectMeta{
			Name:       names.Child(p.Owner.Name, nameDiscovery),
			Namespace:  p.Owner.Namespace,
			Labels:     map[string]string{meta.LabelTailnet: p.Spec.Tailnet, meta.LabelEndpoints: p.Owner.Name},
			Finalizers: []string{meta.FinalizerManaged},
		},
		Spec: tailnetv1alpha1.DiscoverySpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: compose.ProviderConfigRef(p.Spec.Tailnet)},
			ForProvider: tailnetv1alpha1.DiscoveryParameters{
				Include:  slices.Sorted(slices.Values(a.Names)),
				Exclude:  slices.Sorted(slices.Values(a.ExcludeNames)),
				Interval: a.Interval,

				MaxResults: MaxResults,
			},
		},
	}
	for _, s := range slices.Sorted(slices.Values(a.Sources)) {
		d.Spec.ForProvider.Sources = append(d.Spec.ForProvider.Sources, tailnetv1alpha1.DiscoverySource(s))
	}
	for _, s := range a.TagSelectors {
		d.Spec.ForProvider.TagSelectors = append(d.Spec.ForProvider.TagSelectors, tailnetv1alpha1.TagSelector{
			Operator: tailnetv1alpha1.TagSelectorOperator(s.Operator),
			Tag:      tailnetv1alpha1.Tag(s.Tag),
			Values:   compose.Tags(s.Values),
		})
	}
	return d
}

// Ready reports whether the search works.
func (p Plan) Ready() bool {
	return p.Discovery != nil && p.Discovery.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// found returns the devices and services that the Discovery lists, by the name of their endpoint.
// The name depends only on the device or service, so no endpoint is renamed because another one
// appears or disappears. The result omits the TailscaleEndpoints' machines and entries with the
// name of an endpoint of the spec. Services come before devices, because any user of the tailnet
// may choose the name of a device.
func (f Facts) found() map[string]tailnetv1alpha1.Discovered {
	out := map[string]tailnetv1alpha1.Discovered{}
	if f.Spec.AutoDiscovery == nil || f.Discovery == nil {
		return out
	}
	usedNames := map[string]bool{}
	for _, ep := range f.Spec.Endpoints {
		usedNames[ep.Name] = true
	}
	all := slices.Clone(f.Discovery.Status.AtProvider.Discovered)
	slices.SortStableFunc(all, func(a, b tailnetv1alpha1.Discovered) int {
		return cmp.Or(cmp.Compare(b.Source, a.Source), cmp.Compare(a.Name, b.Name), cmp.Compare(a.NodeID, b.NodeID))
	})
	for _, d := range all {
		name := endpointName(d)
		if usedNames[name] || d.NodeID != "" && f.NodeIDs[d.NodeID] {
			continue
		}
		usedNames[name] = true
		out[name] = d
	}
	return out
}

// endpointName returns the name of the endpoint of a device or service: the device's name, or
// svc-NAME for a service. A device whose name could be that of a service's endpoint, or begins with
// prefixDevice, gets another name that begins with prefixDevice.
func endpointName(d tailnetv1alpha1.Discovered) string {
	if d.Source == tailnetv1alpha1.DiscoverServices {
		return names.ServiceEndpoint(d.Name)
	}
	name := names.Child(d.Name)
	if strings.HasPrefix(name+"-", prefixService) || strings.HasPrefix(name, prefixDevice+"-") {
		return names.Child(prefixDevice, d.Name)
	}
	return name
}

// fallbackPort is the port of a discovered endpoint if neither the spec nor the service has ports.
const fallbackPort int32 = 80

// ports returns the ports of a discovered endpoint: those of the spec, or those of the
// service, or port 80.
func (p Plan) ports(d tailnetv1alpha1.Discovered) []gatewayv1alpha1.EndpointsPort {
	if len(p.Spec.Ports) > 0 {
		return p.Spec.Ports
	}
	var out []gatewayv1alpha1.EndpointsPort
	for _, port := range slices.Compact(slices.Sorted(slices.Values(d.Ports))) {
		if n, ok := tailnetv1alpha1.ServicePort(port).Number(); ok {
			out = append(out, gatewayv1alpha1.EndpointsPort{Port: n})
		}
	}
	if len(out) == 0 {
		out = append(out, gatewayv1alpha1.EndpointsPort{Port: fallbackPort})
	}
	return out
}

// Endpoints returns the discovered endpoints as if the spec listed them, in order. One
// without an address is reached by its name.
func (p Plan) Endpoints() []gatewayv1alpha1.Endpoint {
	var out []gatewayv1alpha1.Endpoint
	for _, name := range slices.Sorted(maps.Keys(p.results)) {
		ep := gatewayv1alpha1.Endpoint{Name: name, Ports: p.ports(p.results[name])}
		// These addresses are in the tailnet, so they need no comparison.
		if a := p.results[name].Addresses; len(a) > 0 {
			ep.TailscaleIP = a[0]
		} else {
			ep.TailscaleFQDN = p.results[name].FQDN
		}
		if ep.TailscaleIP != "" || ep.TailscaleFQDN != "" {
			out = append(out, ep)
		}
	}
	return out
}

// Status returns the discovered endpoints for the status.
func (p Plan) Status() []gatewayv1alpha1.DiscoveredEndpoint {
	var out []gatewayv1alpha1.DiscoveredEndpoint
	for _, name := range slices.Sorted(maps.Keys(p.results)) {
		d := p.results[name]
		s := gatewayv1alpha1.DiscoveredEndpoint{
			Name:          name,
			Source:        string(d.Source),
			TailscaleFQDN: d.FQDN,
			Tags:          d.Tags,
			Health:        d.Health,
		}
		if len(d.Addresses) > 0 {
			s.TailscaleIP = d.Addresses[0]
		}
		out = append(out, s)
	}
	return out
}

// Condition returns the condition DiscoverySuccessful.
func (p Plan) Condition() compose.Condition {
	c := compose.Condition{Type: meta.TypeDiscoverySuccessful}
	d := p.Discovery
	if d == nil {
		c.Reason, c.Message = compose.ReasonWaiting, "Waiting for the tailnet to be searched"
		return c
	}
	ready, synced := d.GetCondition(xpv2.TypeReady), d.GetCondition(xpv2.TypeSynced)
	switch {
	case ready.Status == corev1.ConditionTrue && d.Status.AtProvider.Truncated:
		c.Status, c.Reason = compose.True, meta.ReasonTooManyDiscovered
		c.Message = "More devices and services match than can be listed; narrow spec.autoDiscovery"
	case ready.Status == corev1.ConditionTrue:
		c.Status, c.Reason = compose.True, meta.ReasonDiscovered
		c.Message = "The tailnet was searched"
	case synced.Status == corev1.ConditionFalse:
		c.Status, c.Reason, c.Message = compose.False, meta.ReasonCannotDiscover, synced.Message
	case ready.Status == corev1.ConditionFalse && ready.Message != "":
		c.Status, c.Reason, c.Message = compose.False, meta.ReasonCannotDiscover, ready.Message
	default:
		c.Reason, c.Message = compose.ReasonWaiting, "Waiting for the tailnet to be searched"
	}
	return c
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"cmp"
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

// maxDiscovered is the maximum number of entries of a Discovery. Each becomes a Service, and
// Crossplane sends all of them to the function in one message of at most 4 MiB.
const maxDiscovered = 512

// composeDiscovery returns the Discovery that searches the tailnet for endpoints.
func (e *endpoints) composeDiscovery() *tailnetv1alpha1.Discovery {
	a := e.spec.AutoDiscovery
	d := &tailnetv1alpha1.Discovery{
		ObjectMeta: metav1.ObjectMeta{
			Name:       names.Child(e.owner.Name, nameDiscovery),
			Namespace:  e.owner.Namespace,
			Labels:     map[string]string{meta.LabelTailnet: e.spec.Tailnet, meta.LabelEndpoints: e.owner.Name},
			Finalizers: []string{meta.FinalizerManaged},
		},
		Spec: tailnetv1alpha1.DiscoverySpec{
			ManagedResourceSpec: xpv2.ManagedResourceSpec{ProviderConfigReference: compose.ProviderConfigRef(e.spec.Tailnet)},
			ForProvider: tailnetv1alpha1.DiscoveryParameters{
				Include:  slices.Sorted(slices.Values(a.Names)),
				Exclude:  slices.Sorted(slices.Values(a.ExcludeNames)),
				Interval: a.Interval,

				MaxResults: maxDiscovered,
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

// discovered reports whether the search works.
func (e *endpoints) discovered() bool {
	return e.discovery != nil && e.discovery.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// found returns the devices and services that the Discovery lists, by the name of their endpoint.
// The name depends only on the device or service, so no endpoint is renamed because another one
// appears or disappears. The result omits the TailscaleEndpoints' machines and entries with the
// name of an endpoint of the spec. Services come before devices, because any user of the tailnet
// may choose the name of a device.
func (e *endpoints) found() map[string]tailnetv1alpha1.Discovered {
	out := map[string]tailnetv1alpha1.Discovered{}
	if e.spec.AutoDiscovery == nil || e.discovery == nil {
		return out
	}
	usedNames := map[string]bool{}
	for _, ep := range e.spec.Endpoints {
		usedNames[ep.Name] = true
	}
	own := map[string]bool{}
	for _, g := range []*group{e.ingress, e.egress} {
		for _, m := range g.machines {
			own[m.NodeID] = true
		}
	}
	all := slices.Clone(e.discovery.Status.AtProvider.Discovered)
	slices.SortStableFunc(all, func(a, b tailnetv1alpha1.Discovered) int {
		return cmp.Or(cmp.Compare(b.Source, a.Source), cmp.Compare(a.Name, b.Name), cmp.Compare(a.NodeID, b.NodeID))
	})
	for _, d := range all {
		name := endpointName(d)
		if usedNames[name] || d.NodeID != "" && own[d.NodeID] {
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

// A discoveredEndpoint is an endpoint that was discovered, and its ports.
type discoveredEndpoint struct {
	gatewayv1alpha1.Endpoint

	ports []gatewayv1alpha1.EndpointsPort
}

// fallbackPort is the port of a discovered endpoint if neither the spec nor the service has ports.
const fallbackPort int32 = 80

// discoveredPorts returns the ports of a discovered endpoint: those of the spec, or those of the
// service, or port 80.
func (e *endpoints) discoveredPorts(d tailnetv1alpha1.Discovered) []gatewayv1alpha1.EndpointsPort {
	if len(e.spec.Ports) > 0 {
		return e.spec.Ports
	}
	var out []gatewayv1alpha1.EndpointsPort
	for _, p := range slices.Compact(slices.Sorted(slices.Values(d.Ports))) {
		if n, ok := tailnetv1alpha1.ServicePort(p).Number(); ok {
			out = append(out, gatewayv1alpha1.EndpointsPort{Port: n})
		}
	}
	if len(out) == 0 {
		out = append(out, gatewayv1alpha1.EndpointsPort{Port: fallbackPort})
	}
	return out
}

// discoveredEndpoints returns the discovered endpoints as if the spec listed them, in order. One
// without an address is reached by its name.
func (e *endpoints) discoveredEndpoints() []discoveredEndpoint {
	found := e.found()
	var out []discoveredEndpoint
	for _, name := range sortedKeys(found) {
		ep := discoveredEndpoint{Endpoint: gatewayv1alpha1.Endpoint{Name: name}, ports: e.discoveredPorts(found[name])}
		// These addresses are in the tailnet, so they need no comparison.
		if a := found[name].Addresses; len(a) > 0 {
			ep.TailscaleIP = a[0]
		} else {
			ep.TailscaleFQDN = found[name].FQDN
		}
		if hostOf(ep.Endpoint) != "" {
			out = append(out, ep)
		}
	}
	return out
}

// discoveredStatus returns the discovered endpoints for the status.
func (e *endpoints) discoveredStatus() []gatewayv1alpha1.DiscoveredEndpoint {
	found := e.found()
	var out []gatewayv1alpha1.DiscoveredEndpoint
	for _, name := range sortedKeys(found) {
		d := found[name]
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

// discoverySuccessful returns the condition DiscoverySuccessful.
func (e *endpoints) discoverySuccessful() compose.Condition {
	c := compose.Condition{Type: meta.TypeDiscoverySuccessful}
	d := e.discovery
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

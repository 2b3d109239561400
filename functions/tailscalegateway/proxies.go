// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// prefixIngress and prefixEgress start the resource names of proxies. The name of
	// a tailnet follows.
	prefixIngress = "ingress-"
	prefixEgress  = "egress-"

	// suffixEgress ends the names of egress proxies.
	suffixEgress = "egress"

	// defaultReplicas is the schema's default for requests that did not pass the API server.
	defaultReplicas = 2

	// startAtOnce is the maximum number of proxies that wait for their first devices. Each changes
	// a dozen times until then, and Crossplane's circuit breaker counts each change twice against
	// the TailscaleGateway: a budget of 100, and one more per second. Proxies that wait for a user
	// do not count.
	startAtOnce = 2

	// portName is the name of the port of discovered services.
	portName = "http"

	defaultDiscoveryPort = 80
)

// proxies are one TailscaleEndpoints of one direction.
type proxies struct {
	tailnet   *tailnet
	direction gatewayv1alpha1.ConnectionType

	// key is the resource name.
	key string

	// name of the TailscaleEndpoints.
	name string

	// devices is the number of devices that are wanted.
	devices int32

	// observed is the observed TailscaleEndpoints, or nil if there is none.
	observed *gatewayv1alpha1.TailscaleEndpoints
}

// newProxies returns the proxies of a tailnet for one direction.
func newProxies(gp *gatewayPlan, t *tailnet, direction gatewayv1alpha1.ConnectionType) *proxies {
	key, name := prefixIngress+t.Name, names.Child(gp.owner.Name, t.Name)
	if direction == gatewayv1alpha1.ConnectionTypeEgress {
		key, name = prefixEgress+t.Name, names.Child(gp.owner.Name, t.Name, suffixEgress)
	}
	return &proxies{tailnet: t, direction: direction, key: key, name: name, devices: t.replicas(), observed: gp.observed.proxies[key]}
}

// replicas returns the number of devices of each direction.
func (t *tailnet) replicas() int32 { return ptr.Deref(t.Proxy.Replicas, defaultReplicas) }

// moving reports whether the proxies are in another tailnet than they should be in. A
// TailscaleEndpoints cannot change its tailnet, so it must be deleted first.
func (p *proxies) moving() bool { return p.observed != nil && p.observed.Spec.Tailnet != p.tailnet.ref }

// endpoints returns the observed endpoints of the proxies.
func (p *proxies) endpoints() compose.Endpoints {
	return compose.Endpoints{Observed: p.observed, Devices: p.devices}
}

// complete reports whether there are exactly the desired devices, and all are in the desired
// tailnet.
func (p *proxies) complete() bool { return !p.moving() && p.endpoints().Complete() }

// settled reports whether the proxies are complete and ready.
func (p *proxies) settled() bool { return !p.moving() && p.endpoints().Settled() }

// accepted reports whether the TailscaleEndpoints may use its tailnet, so that other objects can
// select it.
func (p *proxies) accepted() bool {
	return p.observed != nil && !p.moving() &&
		p.observed.Status.GetCondition(meta.TypeTailnetAccepted).Status == corev1.ConditionTrue
}

// canHost reports whether there are proxies that a service can select.
func (p *proxies) canHost() bool { return p.accepted() && len(p.observed.Status.Devices) > 0 }

// proxyChildren returns the existing proxies and as many new ones as may start. A tailnet that may
// not be used gets none, nor does a Gateway that may not be shared; existing proxies handle these
// cases themselves.
func proxyChildren(gp *gatewayPlan) children {
	var out children
	starting := 0
	for _, p := range gp.proxies {
		if p.endpoints().Starting() {
			starting++
		}
	}
	for _, p := range gp.proxies {
		if p.moving() || p.observed == nil && (!p.tailnet.verdict.Accepted || !gp.permitted() || starting >= startAtOnce) {
			// Some of the desired proxies are missing, so ready children are not enough.
			out.incomplete = true
			continue
		}
		if p.observed == nil {
			starting++
		}
		// Crossplane would list the proxies that are not ready, and write the composite each time
		// one becomes ready.
		if !p.settled() {
			out.incomplete, out.requeue = true, true
		}
		out.add(p.key, composeEndpoints(gp, p), p.settled())
	}
	return out
}

// composeEndpoints returns the TailscaleEndpoints of proxies.
func composeEndpoints(gp *gatewayPlan, p *proxies) *gatewayv1alpha1.TailscaleEndpoints {
	t := p.tailnet
	e := &gatewayv1alpha1.TailscaleEndpoints{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: gp.owner.Namespace, Labels: gp.labels(t)},
		Spec: gatewayv1alpha1.TailscaleEndpointsSpec{
			Tailnet: t.ref,
			Tags:    t.Tags,
			Proxy: gatewayv1alpha1.Proxy{
				Replicas:       ptr.To(p.devices),
				ConnectionType: p.direction,
				ProxyPods:      t.Proxy.ProxyPods,
			},
		},
	}
	e.Labels[meta.LabelDirection] = string(p.direction)
	if p.direction == gatewayv1alpha1.ConnectionTypeEgress {
		discover(&e.Spec, t.ServiceDiscovery)
		excludeItself(gp, t, e.Spec.AutoDiscovery)
	}
	if p.direction == gatewayv1alpha1.ConnectionTypeIngress && t.SplitDNS != nil {
		e.Spec.DNS = &gatewayv1alpha1.EndpointsDNS{ZoneRef: gatewayv1alpha1.ZoneRef{Name: gp.zoneName(t)}}
	}
	return e
}

// excludeItself excludes the Gateway from its discovery in a tailnet: a route to its own Tailscale
// Service would be a loop, and its ingress proxies serve nothing else. Egress proxies exclude
// themselves. A TailscaleEndpoints has room for these patterns in addition to all patterns of a
// TailscaleGateway.
func excludeItself(gp *gatewayPlan, t *tailnet, d *gatewayv1alpha1.AutoDiscovery) {
	if d == nil {
		return
	}
	var own []string
	if gp.sharing() == gatewayv1alpha1.RouteSharingGateway {
		own = append(own, gp.gatewayServiceName(t))
	}
	if t.ingress != nil {
		own = append(own, names.Host(gp.owner.Namespace, names.Child(t.ingress.name, string(t.ingress.direction)))+"-*")
	}
	for _, n := range own {
		if !slices.Contains(d.ExcludeNames, n) {
			d.ExcludeNames = append(slices.Clone(d.ExcludeNames), n)
		}
	}
}

// discover sets the services that a TailscaleEndpoints discovers for the Gateway's clients. Without
// a limit it discovers nothing, and its proxies wait.
func discover(spec *gatewayv1alpha1.TailscaleEndpointsSpec, d *gatewayv1alpha1.GatewayDiscovery) {
	port := gatewayv1alpha1.EndpointsPort{Name: portName, Port: d.Port, Protocol: d.Protocol}
	if port.Port == 0 {
		port.Port = defaultDiscoveryPort
	}
	spec.Ports = []gatewayv1alpha1.EndpointsPort{port}
	if !d.Narrowed() {
		return
	}
	spec.AutoDiscovery = &gatewayv1alpha1.AutoDiscovery{
		Sources:      d.Sources,
		Names:        d.Patterns,
		ExcludeNames: d.ExcludePatterns,
		Interval:     d.Interval,
	}
	if len(d.Sources) == 0 {
		spec.AutoDiscovery.Sources = []string{string(tailnetv1alpha1.DiscoverServices)}
	}
	if len(d.Patterns) == 0 {
		spec.AutoDiscovery.Names = []string{"*"}
	}
	if len(d.Tags) > 0 {
		spec.AutoDiscovery.TagSelectors = []gatewayv1alpha1.EndpointTagSelector{{Operator: "In", Values: d.Tags}}
	}
}

// labels returns the labels of all children of a tailnet.
func (gp *gatewayPlan) labels(t *tailnet) map[string]string {
	return map[string]string{
		meta.LabelTailnet:        t.ref,
		meta.LabelGateway:        gp.owner.Name,
		meta.LabelGatewayTailnet: t.Name,
	}
}

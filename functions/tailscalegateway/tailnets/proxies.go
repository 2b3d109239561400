// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnets

import (
	"fmt"
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

// PrefixIngress and PrefixEgress start the resource names of proxies. The name of a tailnet follows.
const (
	PrefixIngress = "ingress-"
	PrefixEgress  = "egress-"
)

const (
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

// Proxies are one TailscaleEndpoints of one direction.
type Proxies struct {
	tailnet   *Tailnet
	direction gatewayv1alpha1.ConnectionType

	// key is the resource name.
	key string

	// Name of the TailscaleEndpoints.
	Name string

	// devices is the number of devices that are wanted.
	devices int32

	// Observed is the observed TailscaleEndpoints, or nil if there is none.
	Observed *gatewayv1alpha1.TailscaleEndpoints
}

// newProxies returns the proxies of a tailnet for one direction.
func newProxies(f Facts, t *Tailnet, direction gatewayv1alpha1.ConnectionType) *Proxies {
	key, name := PrefixIngress+t.Name, names.Child(f.Owner.Name, t.Name)
	if direction == gatewayv1alpha1.ConnectionTypeEgress {
		key, name = PrefixEgress+t.Name, names.Child(f.Owner.Name, t.Name, suffixEgress)
	}
	return &Proxies{tailnet: t, direction: direction, key: key, Name: name, devices: t.replicas(), Observed: f.Observed[key]}
}

// replicas returns the number of devices of each direction.
func (t *Tailnet) replicas() int32 { return ptr.Deref(t.Proxy.Replicas, defaultReplicas) }

// Moving reports whether the proxies are in another tailnet than they should be in. A
// TailscaleEndpoints cannot change its tailnet, so it must be deleted first.
func (p *Proxies) Moving() bool { return p.Observed != nil && p.Observed.Spec.Tailnet != p.tailnet.Ref }

// endpoints returns the observed endpoints of the proxies.
func (p *Proxies) endpoints() compose.Endpoints {
	return compose.Endpoints{Observed: p.Observed, Devices: p.devices}
}

// complete reports whether there are exactly the desired devices, and all are in the desired
// tailnet.
func (p *Proxies) complete() bool { return !p.Moving() && p.endpoints().Complete() }

// settled reports whether the proxies are complete and ready.
func (p *Proxies) settled() bool { return !p.Moving() && p.endpoints().Settled() }

// accepted reports whether the TailscaleEndpoints may use its tailnet, so that other objects can
// select it.
func (p *Proxies) accepted() bool {
	return p.Observed != nil && !p.Moving() &&
		p.Observed.Status.GetCondition(meta.TypeTailnetAccepted).Status == corev1.ConditionTrue
}

// CanHost reports whether there are proxies that a service can select.
func (p *Proxies) CanHost() bool { return p.accepted() && len(p.Observed.Status.Devices) > 0 }

// Children returns the existing proxies and as many new ones as may start. A tailnet that may
// not be used gets none, nor does a Gateway that may not be shared; existing proxies handle these
// cases themselves.
func (plan Plan) Children() compose.Children {
	var out compose.Children
	starting := 0
	for _, p := range plan.Proxies {
		if p.endpoints().Starting() {
			starting++
		}
	}
	for _, p := range plan.Proxies {
		if p.Moving() || p.Observed == nil && (!p.tailnet.Verdict.Accepted || !plan.Gateway.Permitted() || starting >= startAtOnce) {
			// Some of the desired proxies are missing, so ready children are not enough.
			out.Incomplete = true
			continue
		}
		if p.Observed == nil {
			starting++
		}
		// Crossplane would list the proxies that are not ready, and write the composite each time
		// one becomes ready.
		if !p.settled() {
			out.Incomplete, out.Requeue = true, true
		}
		out.Add(p.key, composeEndpoints(plan.Facts, p), p.settled())
	}
	return out
}

// EndpointsReady returns the condition EndpointsReady: True if all proxies are in their
// tailnets. Its message does not count proxies: each write of the composite counts against it in
// Crossplane's circuit breaker, and status.tailnetStatus has more details anyway.
func (plan Plan) EndpointsReady() compose.Condition {
	c := compose.Condition{Status: compose.True, Reason: meta.ReasonEndpointsReady, Message: "All proxies are in their tailnets"}
	for _, p := range plan.Proxies {
		if p.complete() {
			continue
		}
		c.Status, c.Reason = compose.False, meta.ReasonEndpointsNotReady
		// Problems that the user must fix come before those that only need time.
		if m := p.endpoints().Problem(); m != "" {
			c.Message = fmt.Sprintf("TailscaleEndpoints %s: %s", p.Name, m)
			return c
		}
		c.Message = "Waiting for proxies; each TailscaleEndpoints in status.tailnetStatus says what it waits for"
	}
	return c
}

// composeEndpoints returns the TailscaleEndpoints of proxies.
func composeEndpoints(f Facts, p *Proxies) *gatewayv1alpha1.TailscaleEndpoints {
	t := p.tailnet
	e := &gatewayv1alpha1.TailscaleEndpoints{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: f.Owner.Namespace, Labels: t.Labels(f.Owner)},
		Spec: gatewayv1alpha1.TailscaleEndpointsSpec{
			Tailnet: t.Ref,
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
		excludeItself(f, t, e.Spec.AutoDiscovery)
	}
	if p.direction == gatewayv1alpha1.ConnectionTypeIngress && t.SplitDNS != nil {
		e.Spec.DNS = &gatewayv1alpha1.EndpointsDNS{ZoneRef: gatewayv1alpha1.ZoneRef{Name: t.ZoneName(f.Owner)}}
	}
	return e
}

// excludeItself excludes the Gateway from its discovery in a tailnet: a route to its own Tailscale
// Service would be a loop, and its ingress proxies serve nothing else. Egress proxies exclude
// themselves. A TailscaleEndpoints has room for these patterns in addition to all patterns of a
// TailscaleGateway.
func excludeItself(f Facts, t *Tailnet, d *gatewayv1alpha1.AutoDiscovery) {
	if d == nil {
		return
	}
	var own []string
	if f.Sharing == gatewayv1alpha1.RouteSharingGateway {
		own = append(own, t.GatewayService(f.Owner))
	}
	if t.Ingress != nil {
		own = append(own, names.Host(f.Owner.Namespace, names.Child(t.Ingress.Name, string(t.Ingress.direction)))+"-*")
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

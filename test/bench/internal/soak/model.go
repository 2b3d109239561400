// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	egv1alpha1 "github.com/envoyproxy/gateway/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
)

const (
	// edge is the TailscaleEndpoints whose proxies lead to other clusters.
	edge = "edge"

	// remoteAddress is the address of its egress pod, and remotePort the port to all other
	// clusters.
	remoteAddress = "192.0.2.240"
	remotePort    = 10008

	// Endpoints have firstAddress or one of the following addresses.
	firstAddress = 20
	addresses    = 200

	maxEndpoints = 3

	// The numbers of these objects are constant, so that they do not cause growth.
	rulesEach   = 2
	policyEach  = 5 // routes
	clusterEach = 4 // targets
)

// A target is a TailscaleServices over a Service with endpoints.
type target struct {
	name      string
	addresses []string
	// interval of its health check. 0 means the default.
	interval time.Duration
	// remote reports that another cluster hosts the target, too.
	remote bool
}

// answers returns the addresses that may answer requests to the target: other clusters are used
// only without local endpoints.
func (t *target) answers() []string {
	if len(t.addresses) == 0 && t.remote {
		return []string{remoteAddress}
	}
	return t.addresses
}

// objects returns the objects of the target, except for the ProxySet.
func (t *target) objects() []client.Object {
	s := gateway.Services(t.name)
	if t.interval > 0 {
		s.Spec.LoadBalancing = &gatewayv1alpha1.LoadBalancing{HealthCheck: &gatewayv1alpha1.HealthCheck{
			Interval: metav1.Duration{Duration: t.interval}, Timeout: metav1.Duration{Duration: time.Second},
		}}
	}
	out := []client.Object{gateway.Service(t.name), t.slice(), s}
	if t.remote {
		out = append(out, t.attachment())
	}
	return out
}

func (t *target) slice() client.Object { return gateway.Slice(t.name, t.addresses...) }

// attachment returns the ServiceAttachment that leads to the other cluster.
func (t *target) attachment() client.Object {
	return &tailnetv1alpha1.ServiceAttachment{
		ObjectMeta: gateway.Meta(t.remoteName()),
		Spec: tailnetv1alpha1.ServiceAttachmentSpec{
			Endpoints:   edge,
			Services:    t.name,
			Direction:   tailnetv1alpha1.DirectionEgress,
			ServiceName: tailnetv1alpha1.ServiceName("svc:" + t.name + "-other"),
			Addresses:   []string{"100.64.0.10"},
			Ports:       []tailnetv1alpha1.AttachmentPort{{Port: gateway.BackendPort}},
			HealthCheck: tailnetv1alpha1.AttachmentHealthCheck{
				Interval: metav1.Duration{Duration: 5 * time.Second}, Timeout: metav1.Duration{Duration: 2 * time.Second}, HealthyThreshold: 1, UnhealthyThreshold: 2,
			},
		},
	}
}

func (t *target) remoteName() string { return edge + "-" + t.name + "-other" }

// A route has a rule for each target, at the path of the target's name.
type route struct {
	name  string
	rules []*target
	// connections is the limit in its BackendTrafficPolicy. 0 means no policy.
	connections int64
}

func (r *route) host() string { return r.name + ".example.com" }

func (r *route) object() *gwapiv1.HTTPRoute {
	o := &gwapiv1.HTTPRoute{ObjectMeta: gateway.Meta(r.name), Spec: gwapiv1.HTTPRouteSpec{
		CommonRouteSpec: gateway.Parents(),
		Hostnames:       []gwapiv1.Hostname{gwapiv1.Hostname(r.host())},
	}}
	for _, t := range r.rules {
		o.Spec.Rules = append(o.Spec.Rules, rule("/"+t.name, t.name))
	}
	return o
}

// rule returns a rule to a target.
func rule(path, backend string) gwapiv1.HTTPRouteRule {
	return gwapiv1.HTTPRouteRule{
		Matches: []gwapiv1.HTTPRouteMatch{{Path: &gwapiv1.HTTPPathMatch{Type: ptr.To(gwapiv1.PathMatchPathPrefix), Value: &path}}},
		BackendRefs: []gwapiv1.HTTPBackendRef{{BackendRef: gwapiv1.BackendRef{BackendObjectReference: gwapiv1.BackendObjectReference{
			Group: ptr.To[gwapiv1.Group](gatewayv1alpha1.Group), Kind: ptr.To[gwapiv1.Kind](gatewayv1alpha1.TailscaleServicesKind),
			Name: gwapiv1.ObjectName(backend), Port: ptr.To[gwapiv1.PortNumber](gateway.BackendPort),
		}}}},
	}
}

// policy returns the policy of the route's backends.
func (r *route) policy() client.Object {
	p := &egv1alpha1.BackendTrafficPolicy{ObjectMeta: gateway.Meta(r.name)}
	p.Spec.TargetRefs = []gwapiv1.LocalPolicyTargetReferenceWithSectionName{{
		LocalPolicyTargetReference: gwapiv1.LocalPolicyTargetReference{Group: gwapiv1.GroupName, Kind: "HTTPRoute", Name: gwapiv1.ObjectName(r.name)},
	}}
	p.Spec.CircuitBreaker = &egv1alpha1.CircuitBreaker{MaxConnections: &r.connections}
	return p
}

// A wanted holds the desired routes and targets. It is not safe for concurrent use.
type wanted struct {
	rand    *rand.Rand
	routes  []*route
	targets []*target
	// serial makes names unique over the run, so that stale state of an old name shows.
	serial int
}

func newModel(seed uint64, routes, targets int) *wanted {
	m := &wanted{rand: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // The choices must be repeatable.
	for i := range targets {
		m.targets = append(m.targets, m.newTarget(i%clusterEach == 0))
	}
	for i := range routes {
		m.routes = append(m.routes, m.newRoute())
		if i%policyEach == 0 {
			m.routes[i].connections = m.connections()
		}
	}
	return m
}

func (m *wanted) name(prefix string) string {
	m.serial++
	return fmt.Sprintf("%s-%d", prefix, m.serial)
}

func (m *wanted) newTarget(remote bool) *target {
	return &target{name: m.name("t"), addresses: m.addresses(), remote: remote}
}

func (m *wanted) newRoute() *route {
	r := &route{name: m.name("r")}
	for range rulesEach {
		r.rules = append(r.rules, m.other(r))
	}
	return r
}

// other returns a target that the route does not refer to.
func (m *wanted) other(r *route) *target {
	return pick(m, having(m.targets, func(t *target) bool { return !slices.Contains(r.rules, t) }))
}

func (m *wanted) connections() int64 { return 512 + int64(m.rand.IntN(512)) }

func (m *wanted) addresses() []string {
	var out []string
	for range 1 + m.rand.IntN(maxEndpoints) {
		if a := fmt.Sprintf("192.0.2.%d", firstAddress+m.rand.IntN(addresses)); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// having returns the elements for which match returns true.
func having[T any](items []T, match func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(items), func(t T) bool { return !match(t) })
}

// naming returns the routes that refer to a target.
func (m *wanted) naming(t *target) []*route {
	return having(m.routes, func(r *route) bool { return slices.Contains(r.rules, t) })
}

func pick[T any](m *wanted, items []T) T { return items[m.rand.IntN(len(items))] }

// proxySet returns a ProxySet with a port for each target that another cluster hosts.
func (m *wanted) proxySet() client.Object {
	p := &tailnetv1alpha1.ProxySet{ObjectMeta: gateway.Meta(edge), Spec: tailnetv1alpha1.ProxySetSpec{
		Endpoints: edge,
		Tailnet:   "corp",
		Sets:      []tailnetv1alpha1.ProxySetMember{{Name: edge + "-out", Direction: tailnetv1alpha1.DirectionEgress, Replicas: 1}},
	}}
	for _, t := range m.targets {
		if t.remote {
			p.Spec.Targets = append(p.Spec.Targets, tailnetv1alpha1.ProxySetTarget{
				Name: fmt.Sprintf("%s/%d", t.remoteName(), gateway.BackendPort), Port: gateway.BackendPort, Protocol: "TCP", ProxyPort: remotePort, Weight: 1,
			})
		}
	}
	return p
}

// egressPods returns the egress pods of the TailscaleEndpoints.
func egressPods() client.Object { return gateway.Slice(edge+"-out", remoteAddress) }

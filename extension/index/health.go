// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// An Address is where an endpoint listens.
type Address struct {
	Host string
	Port int32
}

// A Candidate is an endpoint of a target before health has a say in where it stands.
type Candidate struct {
	// Source is the backend, the endpoint of a TailscaleEndpoints, or the
	// ServiceAttachment that it is of.
	Source string

	// Remote reports that it leads to another cluster, and Cluster which, by its ID. That is
	// empty for this one, and where nobody said.
	Remote  bool
	Cluster string

	// Offline reports that the tailnet reports the device behind it as offline.
	Offline bool

	Zone     string
	Address  Address
	Hostname string
	Weight   uint32
}

// Delays before traffic moves between the backends of a target.
type Delays struct {
	// Failover is how long local backends must fail before other clusters are used.
	// Zero is at once.
	Failover time.Duration

	// Failback is how long local backends must be well again before they are used
	// in other clusters' place. Zero is at once.
	Failback time.Duration

	// Primary is the source that others stand in for, and PrimaryFailback how long it
	// must be well again. Empty if no backend is.
	Primary         string
	PrimaryFailback time.Duration
}

// A Placement is what probes have found out about the endpoints of a target. The zero
// value leaves all as the objects have it. Who is given one must not change it.
type Placement struct {
	// Sick endpoints get traffic only when no other is left.
	Sick map[Address]bool

	// LocalOnly keeps endpoints of other clusters out, if there is a local one.
	LocalOnly bool

	// Waiting are sources that are well again, and not to be used before all others
	// yet. Local stands for all local ones.
	Waiting map[string]bool
	Local   bool
}

// Equal reports whether both mean the same.
func (p Placement) Equal(o Placement) bool {
	return p.LocalOnly == o.LocalOnly && p.Local == o.Local && maps.Equal(p.Sick, o.Sick) && maps.Equal(p.Waiting, o.Waiting)
}

// IsZero reports whether nothing is to be changed.
func (p Placement) IsZero() bool { return p.Equal(Placement{}) }

// SetHealth says what probes have found out about targets. Others keep what was told of
// them. Those that no route names are left out. There is one snapshot for all.
func (s *Store) SetHealth(of map[TargetKey]Placement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	d := newDirty()
	for k, p := range of {
		if len(s.namedBy[consumer{target: k}]) == 0 || s.world.placements[k].Equal(p) {
			continue
		}
		if p.IsZero() {
			delete(s.world.placements, k)
		} else {
			s.world.placements[k] = p
		}
		d.targets[k] = struct{}{}
	}
	s.advance(d, began)
}

// locate the endpoints of sources, as far as probes allow, and remember who is to be
// probed.
func (v *view) locate(t *Target, sources []source) {
	if t.Shape.HealthCheck != nil {
		t.Candidates = candidates(sources)
	}
	t.Localities = localities(place(sources, v.placements[t.Key]))
}

// candidates are the endpoints that may get something new.
func candidates(sources []source) []Candidate {
	var out []Candidate
	for _, s := range sources {
		if s.weight == 0 {
			continue
		}
		for _, e := range s.endpoints {
			if e.Health == Draining {
				continue
			}
			out = append(out, Candidate{
				Source: s.name, Remote: s.remote, Cluster: s.cluster, Offline: s.offline, Zone: e.zone, Weight: e.Weight,
				Address: Address{Host: e.Address, Port: e.Port}, Hostname: e.Hostname,
			})
		}
	}
	return out
}

// place endpoints by health. Those that are sick come last, but never out:
//   - If nothing well is left nothing moves. To send traffic to who may be sick is
//     better than to nobody.
//   - If others that are well stand behind them, or behind the first of those, the sick
//     keep their place and are marked as degraded. Envoy then has the traffic go over as
//     gradually as endpoints fail, and uses the degraded only after all that are well. It
//     goes on using them until it has found well who has just come.
//   - Else they move behind all others. Envoy's workers learn of priorities one after the
//     other, and find in between who is well.
func place(sources []source, p Placement) []source {
	if p.IsZero() {
		return sources
	}
	sources = slices.Clone(sources)
	if p.LocalOnly && slices.ContainsFunc(sources, func(s source) bool { return !s.remote && s.weight > 0 && usable(s.endpoints) > 0 }) {
		for i := range sources {
			if sources[i].remote {
				sources[i].endpoints = nil
			}
		}
	}
	last := func(s source) bool { return p.Waiting[s.name] || p.Local && !s.remote }
	first, behind, end := uint32(math.MaxUint32), false, PriorityUnhealthy
	for _, s := range sources {
		if s.weight > 0 {
			end = max(end, s.priority+1)
		}
		if !last(s) && hasHealthy(p, s) {
			first = min(first, s.priority)
		}
	}
	if first == math.MaxUint32 {
		return sources
	}
	for _, s := range sources {
		behind = behind || s.priority > first && !last(s) && hasHealthy(p, s)
	}
	var out, moved []source
	for _, s := range sources {
		if last(s) {
			gone := s
			gone.priority = end
			moved = append(moved, gone)
			s.endpoints = nil
			out = append(out, s)
			continue
		}
		well, sick := divide(p, s.endpoints)
		switch {
		case len(sick) == 0:
		case behind || s.priority < first:
			s.endpoints = sortedByAddress(append(well, sick...))
		default:
			gone := s
			gone.priority, gone.endpoints = end, sick
			moved = append(moved, gone)
			s.endpoints = well
		}
		out = append(out, s)
	}
	return append(out, moved...)
}

// hasHealthy reports whether a source has an endpoint that may get something new and is not sick.
func hasHealthy(p Placement, s source) bool {
	return s.weight > 0 && slices.ContainsFunc(s.endpoints, func(e zoned) bool { return e.Health != Draining && !isSick(p, e) })
}

func isSick(p Placement, e zoned) bool { return p.Sick[Address{Host: e.Address, Port: e.Port}] }

// divide endpoints into those that are well, and those that are sick, which are marked.
// Who drains has health of its own.
func divide(p Placement, in []zoned) (well, sick []zoned) {
	for _, e := range in {
		if e.Health != Draining && isSick(p, e) {
			e.Health = Degraded
			sick = append(sick, e)
			continue
		}
		well = append(well, e)
	}
	return well, sick
}

func sortedByAddress(in []zoned) []zoned {
	slices.SortStableFunc(in, func(a, b zoned) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	return in
}

// delays that a TailscaleServices asks for.
func delays(lb *gatewayv1alpha1.LoadBalancing) Delays {
	d := Delays{}
	if lb == nil {
		return d
	}
	if p := lb.FailoverPolicy; p != nil {
		d.Failover, d.Failback = duration(p.FailoverTimeout, 0), duration(p.FailbackDelay, 0)
	}
	if f := lb.Failover; f != nil && lb.Strategy == gatewayv1alpha1.StrategyFailover {
		d.Primary, d.PrimaryFailback = string(f.Primary), duration(f.FailbackDelay, failbackDelay)
	}
	return d
}

// failbackDelay that the schema has as the default of strategy failover.
const failbackDelay = time.Minute

func duration(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

// healthOffline is what status.discoveredEndpoints says of such a device.
const healthOffline = "Offline"

// offline are the endpoints of a TailscaleEndpoints whose devices the tailnet reports as
// offline, by name.
func offline(o *gatewayv1alpha1.TailscaleEndpoints) map[string]bool {
	var out map[string]bool
	for _, d := range o.Status.DiscoveredEndpoints {
		if d.Health != healthOffline {
			continue
		}
		if out == nil {
			out = map[string]bool{}
		}
		out[d.Name] = true
	}
	return out
}

// stripServicesStatus of all but the DNS name of a service that leads to Gateways: others'
// routes to it might lead in a circle.
func stripServicesStatus(o *gatewayv1alpha1.TailscaleServices) {
	vip := o.Status.VIPServiceStatus
	o.Status = gatewayv1alpha1.TailscaleServicesStatus{}
	leads := func(b gatewayv1alpha1.Backend) bool { return b.Kind == gatewayv1alpha1.BackendKindGateway }
	if vip != nil && vip.DNSName != "" && slices.ContainsFunc(o.Spec.Backends, leads) {
		o.Status.VIPServiceStatus = &gatewayv1alpha1.ServiceVIPStatus{DNSName: vip.DNSName}
	}
}

// hasEndpoint reports whether somebody wrote the endpoint that a target is of.
func hasEndpoint(o *gatewayv1alpha1.TailscaleEndpoints, target string) bool {
	name, _, _ := strings.Cut(target, "/")
	return slices.ContainsFunc(o.Spec.Endpoints, func(e gatewayv1alpha1.Endpoint) bool { return e.Name == name })
}

// stripEndpointsStatus of all but who is offline, and the Services of endpoints that
// somebody wrote. Of those that a Gateway discovers with, what was found stays, and whether
// it could be looked for.
func stripEndpointsStatus(o *gatewayv1alpha1.TailscaleEndpoints) {
	in := o.Status
	o.Status = gatewayv1alpha1.TailscaleEndpointsStatus{}
	_, discovers := o.Labels[meta.LabelGateway]
	for _, d := range in.DiscoveredEndpoints {
		switch {
		case discovers:
			o.Status.DiscoveredEndpoints = append(o.Status.DiscoveredEndpoints, gatewayv1alpha1.DiscoveredEndpoint{
				Name: d.Name, Source: d.Source, TailscaleFQDN: d.TailscaleFQDN, Health: d.Health,
			})
		case d.Health == healthOffline:
			o.Status.DiscoveredEndpoints = append(o.Status.DiscoveredEndpoints, gatewayv1alpha1.DiscoveredEndpoint{Name: d.Name, Health: d.Health})
		}
	}
	for _, t := range in.EgressTargets {
		if !discovers && !hasEndpoint(o, t.Name) {
			continue
		}
		o.Status.EgressTargets = append(o.Status.EgressTargets, gatewayv1alpha1.EgressTargetStatus{Name: t.Name, Service: t.Service})
	}
	for _, d := range in.Devices {
		// One tells the tailnet's domain.
		if d.TailscaleFQDN != "" && (discovers || len(o.Spec.Endpoints) > 0) {
			o.Status.Devices = []gatewayv1alpha1.DeviceStatus{{TailscaleFQDN: d.TailscaleFQDN}}
			break
		}
	}
	if !discovers {
		return
	}
	if c := in.GetCondition(meta.TypeDiscoverySuccessful); c.Status != corev1.ConditionUnknown {
		o.Status.SetConditions(xpv2.Condition{Type: c.Type, Status: c.Status})
	}
}

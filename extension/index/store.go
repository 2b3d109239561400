// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A Change of an object.
type Change struct {
	// Object as it is now. It must not be changed afterwards: parts of it are
	// kept. Of one that is gone, kind, namespace and name are enough.
	Object client.Object

	// Gone reports that the object is no more.
	Gone bool
}

// A consumer is what is built of other objects: a target, or the endpoints of a
// Service that stands beside one. One of both is set.
type consumer struct {
	target  ir.TargetKey
	service ir.ServicePort
}

// A Store holds the newest Snapshot, and makes the next.
type Store struct {
	snapshot atomic.Pointer[ir.Snapshot]

	// mu guards what follows. Readers of snapshots never take it.
	mu    sync.Mutex
	world *world

	// serves says which Gateways are. Nil means all.
	serves func(gateway types.NamespacedName) bool

	// namedBy are the routes and policies that name a consumer: without any it is
	// dropped.
	namedBy map[consumer]map[ir.RouteKey]struct{}

	// ruleNames are the names of endpoints of a route's rules.
	ruleNames map[ir.RouteKey][]string

	// deps of consumers, and the same by what they depend on.
	deps       map[consumer]map[ref]struct{}
	dependents map[ref]map[consumer]struct{}

	// parts of the digests of Gateways.
	parts parts

	subscriptions map[*Subscription]struct{}

	// wants are policies and Gateways by the Secrets that may be read for them, and secrets
	// is sent to when these are others.
	wants   map[types.NamespacedName]map[ir.RouteKey]struct{}
	secrets chan struct{}

	// hosts is sent to when the DNS names that targets need are others.
	hosts   chan struct{}
	revised map[chan<- struct{}]struct{}

	metrics *Metrics
}

// NewStore returns one with an empty Snapshot.
func NewStore() *Store {
	s := &Store{
		world:         newWorld(),
		namedBy:       map[consumer]map[ir.RouteKey]struct{}{},
		ruleNames:     map[ir.RouteKey][]string{},
		deps:          map[consumer]map[ref]struct{}{},
		dependents:    map[ref]map[consumer]struct{}{},
		parts:         newParts(),
		subscriptions: map[*Subscription]struct{}{},
		wants:         map[types.NamespacedName]map[ir.RouteKey]struct{}{},
		secrets:       make(chan struct{}, 1),
		hosts:         make(chan struct{}, 1),
		revised:       map[chan<- struct{}]struct{}{},
		metrics:       newMetrics(),
	}
	s.snapshot.Store(&ir.Snapshot{})
	return s
}

// Snapshot is the newest. It is never nil.
func (s *Store) Snapshot() *ir.Snapshot { return s.snapshot.Load() }

// Apply changes, and make one Snapshot of them all. What cannot be read is told, and
// the rest is applied.
func (s *Store) Apply(changes ...Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	d := newDirty()
	var errs []error
	for _, c := range changes {
		if err := s.world.put(c, d); err != nil {
			errs = append(errs, err)
		}
	}
	s.advance(d, began)
	s.metrics.unusable.Add(float64(len(errs)))
	return errors.Join(errs...)
}

// SetHost tells the addresses of a DNS name, which whoever resolves names finds out.
// None means that it has none.
func (s *Store) SetHost(host string, addresses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	host = ir.CanonicalHost(host)
	addresses = slices.Compact(slices.Sorted(slices.Values(addresses)))
	if len(addresses) == 0 {
		delete(s.world.hosts, host)
	} else {
		s.world.hosts[host] = addresses
	}
	d := newDirty()
	d.ref(refHost, types.NamespacedName{Name: host})
	s.advance(d, began)
}

// Hosts are the DNS names whose addresses targets need, sorted.
func (s *Store) Hosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for r := range s.dependents {
		if r.kind == refHost {
			out = append(out, r.Name)
		}
	}
	slices.Sort(out)
	return out
}

// HostsChanged is sent to when Hosts may have others than before. It is for one
// reader.
func (s *Store) HostsChanged() <-chan struct{} { return s.hosts }

// wanted tells the reader of HostsChanged if r is a DNS name, which comes or goes.
func (s *Store) wanted(r ref) {
	if r.kind != refHost {
		return
	}
	select {
	case s.hosts <- struct{}{}:
	default:
	}
}

// A change is a Snapshot in the making. Its maps are those of the one before until
// the first write to them.
type change struct {
	next *ir.Draft

	// endpoints are the consumers whose localities are others, and routes those
	// whose rules are, with the names that these had.
	endpoints []consumer
	routes    map[ir.RouteKey][]string
	shapes    bool

	// pins are the routes whose policies are others, and granted reports that
	// ReferenceGrants are.
	pins    []ir.RouteKey
	granted bool

	// identities are the Gateways of which other listeners are told who asks.
	identities []types.NamespacedName

	// certificates are the Gateways that present other ones.
	certificates []types.NamespacedName

	// bootstraps are the Gateways whose Envoys have the authority tailscale now, or no more.
	bootstraps []types.NamespacedName

	// policies are the TailscaleRoutePolicies that are others, or stand elsewhere.
	policies []types.NamespacedName

	// reshaped are targets that changed for more than their endpoints.
	reshaped []ir.TargetKey
}

// digest replaces the part of an old thing by that of a new one.
func (c *change) digest(old, now any) {
	if was, is := ir.Sum(old), ir.Sum(now); was != is {
		c.next.Digest += is - was
		c.shapes = true
	}
}

// advance to the next Snapshot, whose making began then.
func (s *Store) advance(d *dirty, began time.Time) {
	c := &change{next: s.Snapshot().Edit(), routes: map[ir.RouteKey][]string{}}
	todo := map[consumer]struct{}{}
	for k := range d.routes {
		s.advanceRoute(c, k, todo)
	}
	for n := range d.secrets {
		s.advanceSecret(c, n)
	}
	for n := range d.policies {
		s.advancePolicy(c, n, todo)
	}
	c.attach()
	for r := range d.refs {
		for of := range s.dependents[r] {
			todo[of] = struct{}{}
		}
	}
	for k := range d.targets {
		todo[consumer{target: k}] = struct{}{}
	}
	for of := range todo {
		if len(s.namedBy[of]) == 0 {
			s.drop(c, of)
			continue
		}
		s.rebuild(c, of)
	}
	for k := range d.pins {
		s.advancePins(c, k)
	}
	for n := range d.gateways {
		s.advanceAbout(c, n)
	}
	for n := range d.identities {
		s.advanceIdentity(c, n)
	}
	for n := range d.certificates {
		s.advanceCertificate(c, n)
	}
	for n := range d.bootstraps {
		s.advanceBootstrap(c, n)
	}
	if d.grants {
		if old, now := maps.Collect(c.next.Grants.All()), s.world.granted(); !maps.Equal(now, old) {
			c.digest(grantSum(old), grantSum(now))
			c.next.Grants.Replace(c.next, now)
			c.granted = true
		}
	}
	if c.shapes {
		c.next.Revision++
		s.retellPolicies(c)
		s.advanceGateways(c)
	}
	if !c.next.Changed() && !c.shapes {
		return
	}
	now := c.next.Finish()
	s.snapshot.Store(now)
	s.publish(c)
	if c.shapes || len(c.policies) > 0 {
		s.revise()
	}
	s.metrics.made(now, c.shapes, time.Since(began))
}

// grantSum is what grants are in a digest. Without any it is nothing.
func grantSum(m map[ir.Grant]bool) any {
	if len(m) == 0 {
		return nil
	}
	return struct{ Granted map[ir.Grant]bool }{m}
}

// advanceRoute takes a route over, and says whom it named and names.
func (s *Store) advanceRoute(c *change, k ir.RouteKey, todo map[consumer]struct{}) {
	old := c.next.Routes.Get(k)
	var now *ir.Route
	if p, gateways := s.served(k); p != nil {
		r := p.Route
		r.Gateways = gateways
		now = &r
	}
	if reflect.DeepEqual(old, now) {
		return
	}
	c.digest(routeSum(old), routeSum(now))
	c.routes[k] = s.ruleNames[k]
	c.next.Routes.Put(c.next, k, now, now == nil)
	if now == nil {
		delete(s.ruleNames, k)
	} else {
		s.ruleNames[k] = ruleNames(now)
	}
	s.names(k, consumers(old), consumers(now), todo)
}

// names notes what a route or a policy named and names.
func (s *Store) names(k ir.RouteKey, old, now map[consumer]struct{}, todo map[consumer]struct{}) {
	for of := range old {
		delete(s.namedBy[of], k)
		if len(s.namedBy[of]) == 0 {
			delete(s.namedBy, of)
			todo[of] = struct{}{}
		}
	}
	for of := range now {
		if s.namedBy[of] == nil {
			s.namedBy[of] = map[ir.RouteKey]struct{}{}
			todo[of] = struct{}{}
		}
		s.namedBy[of][k] = struct{}{}
	}
}

// routeSum leaves out the generation and what is for people, except the route's age: a
// change of what nothing is made of is none.
func routeSum(r *ir.Route) any {
	if r == nil {
		return nil
	}
	out := *r
	out.Generation, out.About = 0, ir.About{Created: r.About.Created}
	return out
}

// consumers that a route names.
func consumers(r *ir.Route) map[consumer]struct{} {
	out := map[consumer]struct{}{}
	if r == nil {
		return out
	}
	for _, rule := range r.Rules {
		mixed := rule.OursBackend()
		for _, b := range rule.Backends {
			switch {
			case b.Ours():
				out[consumer{target: b.Target(r.Key.Kind)}] = struct{}{}
			case b.Kind == ir.BackendService && mixed:
				out[consumer{service: b.ServicePort(r.Key.Kind)}] = struct{}{}
			}
		}
		for _, b := range rule.Mirrors {
			if b.Ours() {
				out[consumer{target: b.Target(r.Key.Kind)}] = struct{}{}
			}
		}
	}
	return out
}

// drop what no route names any more.
func (s *Store) drop(c *change, of consumer) {
	for r := range s.deps[of] {
		s.independent(of, r)
	}
	delete(s.deps, of)
	c.endpoints = append(c.endpoints, of)
	if of.target == (ir.TargetKey{}) {
		c.next.Services.Delete(c.next, of.service)
		return
	}
	delete(s.world.placements, of.target)
	c.digest(shapeSum(c.next.Targets.Get(of.target)), nil)
	c.reshaped = append(c.reshaped, of.target)
	c.next.Targets.Delete(c.next, of.target)
}

// rebuild a target, or the endpoints of a Service.
func (s *Store) rebuild(c *change, of consumer) {
	v := s.world.view()
	if of.target == (ir.TargetKey{}) {
		s.rebuildService(c, v, of)
	} else {
		s.rebuildTarget(c, v, of)
	}
	for r := range s.deps[of] {
		if _, ok := v.seen[r]; !ok {
			s.independent(of, r)
		}
	}
	for r := range v.seen {
		if s.dependents[r] == nil {
			s.dependents[r] = map[consumer]struct{}{}
			s.wanted(r)
		}
		s.dependents[r][of] = struct{}{}
	}
	s.deps[of] = v.seen
}

func (s *Store) independent(of consumer, r ref) {
	delete(s.dependents[r], of)
	if len(s.dependents[r]) == 0 {
		delete(s.dependents, r)
		s.wanted(r)
	}
}

func (s *Store) rebuildService(c *change, v *view, of consumer) {
	protocol := corev1.ProtocolTCP
	if of.service.UDP {
		protocol = corev1.ProtocolUDP
	}
	endpoints, _, _ := v.serviceEndpoints(of.service.NamespacedName, of.service.Port, protocol)
	now := localities([]source{{name: of.service.Name, weight: 1, endpoints: endpoints}})
	old, ok := c.next.Services.Lookup(of.service)
	if ok && reflect.DeepEqual(old, now) {
		return
	}
	c.next.Services.Set(c.next, of.service, now)
	c.endpoints = append(c.endpoints, of)
}

func (s *Store) rebuildTarget(c *change, v *view, of consumer) {
	now := v.build(of.target)
	old := c.next.Targets.Get(of.target)
	if reflect.DeepEqual(old, now) {
		return
	}
	c.next.Targets.Set(c.next, of.target, now)
	if old == nil || old.Missing != now.Missing || !reflect.DeepEqual(old.Shape, now.Shape) {
		c.digest(shapeSum(old), shapeSum(now))
		c.reshaped = append(c.reshaped, of.target)
	}
	if old == nil || !reflect.DeepEqual(old.Localities, now.Localities) {
		c.endpoints = append(c.endpoints, of)
	}
}

// shapeSum is what a target is in a digest.
func shapeSum(t *ir.Target) any {
	if t == nil {
		return nil
	}
	return ir.Target{Key: t.Key, Shape: t.Shape, Missing: t.Missing}
}

func (s *Store) advancePins(c *change, k ir.RouteKey) {
	now := ir.Settings{}
	if p, _ := s.served(k); p != nil {
		now = ir.Settings{Pinned: s.world.pinned(p), Tunings: s.world.tunings(p), Wide: s.world.wide(p)}
	}
	old := c.next.Settings.Get(k)
	if old.Equal(now) {
		return
	}
	c.next.Settings.Put(c.next, k, now, now.Equal(ir.Settings{}))
	c.digest(settingsSum(k, old), settingsSum(k, now))
	c.pins = append(c.pins, k)
}

// settingsSum is what the settings of a route are in a digest.
func settingsSum(k ir.RouteKey, of ir.Settings) any {
	if of.Equal(ir.Settings{}) {
		return nil
	}
	return struct {
		Route    ir.RouteKey
		Settings ir.Settings
	}{k, of}
}

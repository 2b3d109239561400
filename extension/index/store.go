// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// A Change of an object.
type Change struct {
	// Object in its new state. It must not be changed afterwards, because the Store holds
	// parts of it. Kind, namespace and name are enough for a deleted object.
	Object client.Object

	// Deleted reports that the object was deleted.
	Deleted bool

	// read is what Read found. Nil if Read was not called.
	read *reading
}

// A reading is what parsing a changed object gives.
type reading struct {
	// route is set if the object is a route, and policy if it is a TailscaleRoutePolicy that exists.
	route  *parse.RouteObject
	policy *ir.RoutePolicy
}

// Read parses the object of a change, which may take long if a tenant wants it to. It holds no lock, so
// only the caller waits. Apply reads changes that were not read before.
func (s *Store) Read(c Change) Change {
	if c.read != nil {
		return c
	}
	c.read = &reading{}
	switch o := c.Object.(type) {
	case *gwapiv1.HTTPRoute, *gwapiv1.GRPCRoute, *gwapiv1.TCPRoute, *gwapiv1.UDPRoute, *gwapiv1.TLSRoute:
		c.read.route = parse.ParseRouteObject(c.Object)
	case *gatewayv1alpha1.TailscaleRoutePolicy:
		if !c.Deleted {
			c.read.policy = parse.ParseRoutePolicy(o)
			checkRules(c.read.policy)
		}
	}
	return c
}

// A Store holds the newest Snapshot, and builds the next one.
type Store struct {
	snapshot atomic.Pointer[ir.Snapshot]

	// mu guards the fields below. Readers of snapshots never lock it.
	mu      sync.Mutex
	objects *objects

	// namedBy are the routes and policies that name a dependent. A dependent without any is
	// dropped.
	namedBy map[dependent]map[entry]struct{}

	// ruleNames are the names of the endpoint lists of a route's rules, if it has any.
	ruleNames map[entry][]string

	// built are the dependents that exist, and byLookup those by what they look up.
	built    map[dependent]*builtDependent
	byLookup map[ref]map[*builtDependent]struct{}

	// foreign are the routes that name objects of another namespace, by that namespace.
	foreign map[string]map[ir.RouteKey]struct{}

	digests digests

	subscriptions map[*Subscription]struct{}

	// readers are the policies and Gateways for which a Secret may be read.
	readers map[types.NamespacedName]map[entry]struct{}

	// hosts receives a value when the DNS names that targets need change.
	hosts   chan struct{}
	revised map[chan<- struct{}]struct{}

	metrics *Metrics
}

// NewStore returns a Store with an empty Snapshot.
func NewStore() *Store {
	s := &Store{
		objects:       newObjects(),
		namedBy:       map[dependent]map[entry]struct{}{},
		ruleNames:     map[entry][]string{},
		built:         map[dependent]*builtDependent{},
		byLookup:      map[ref]map[*builtDependent]struct{}{},
		foreign:       map[string]map[ir.RouteKey]struct{}{},
		digests:       newDigests(),
		subscriptions: map[*Subscription]struct{}{},
		readers:       map[types.NamespacedName]map[entry]struct{}{},
		hosts:         make(chan struct{}, 1),
		revised:       map[chan<- struct{}]struct{}{},
		metrics:       newMetrics(),
	}
	s.snapshot.Store(&ir.Snapshot{})
	return s
}

// Snapshot returns the newest Snapshot. It is never nil.
func (s *Store) Snapshot() *ir.Snapshot { return s.snapshot.Load() }

// Apply applies changes and builds one Snapshot of them. It returns an error for objects
// that cannot be parsed, and applies the others.
func (s *Store) Apply(changes ...Change) error {
	inputs := make([]*input, 0, len(changes))
	for _, c := range changes {
		inputs = append(inputs, newInput(s.Read(c)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	p := newPending()
	var errs []error
	for _, change := range inputs {
		if err := s.objects.put(change, p); err != nil {
			errs = append(errs, err)
		}
	}
	s.recompute(p, began)
	s.metrics.unusable.Add(float64(len(errs)))
	return errors.Join(errs...)
}

// put stores a changed object in each section that reads its kind.
func (all *objects) put(change *input, p *pending) error {
	read := false
	for _, section := range sections {
		if section.store == nil {
			continue
		}
		ok, err := section.store(all, change, p)
		if err != nil {
			return err
		}
		read = read || ok
	}
	switch o := change.Object.(type) {
	case *unstructured.Unstructured:
		if !read {
			return errors.Errorf("cannot keep a %s: nothing is made of it", o.GroupVersionKind().GroupKind())
		}
	default:
		if !read {
			return errors.Errorf("cannot keep a %s: nothing is made of it", fmt.Sprintf("%T", o))
		}
	}
	return nil
}

// recompute builds the next Snapshot of the changes that are pending since a time.
func (s *Store) recompute(p *pending, began time.Time) {
	e := newEdit(s.Snapshot(), p)
	for _, section := range sections {
		section.recompute(s, e)
	}
	if e.translate {
		e.next.Revision++
		if len(s.readers) > 0 {
			// The state of a policy's client certificate depends on whether backends speak TLS.
			e.next.PolicyRevision++
		}
		recomputeDigests(s, e)
	}
	if !e.next.Changed() && !e.translate {
		return
	}
	snapshot := e.next.Finish()
	s.snapshot.Store(snapshot)
	s.publish(e)
	if e.translate || e.policies || e.tlsPolicies {
		s.revise()
	}
	s.metrics.made(snapshot, e.translate, time.Since(began))
}

// Serve restricts the Store to the routes of some Gateways, because others have a separate
// extension, or this extension belongs to one Gateway. Targets that only other routes name
// are not known. Before the first call, and with nil, the Store serves all Gateways.
func (s *Store) Serve(serves func(gateway types.NamespacedName) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	if serves == nil {
		serves = everyGateway
	}
	s.objects.serves = serves
	p := newPending()
	for _, section := range sections {
		if section.serve != nil {
			section.serve(s.objects, p)
		}
	}
	s.recompute(p, began)
}

// Serves reports whether routes of a Gateway are served.
func (s *Store) Serves(gateway types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects.serves(gateway)
}

// SetHost sets the addresses of a DNS name. An empty list means that the name has none, or that
// they cannot be found.
func (s *Store) SetHost(host string, addresses []string) {
	addresses = slices.Compact(slices.Sorted(slices.Values(addresses)))
	s.changeHost(host, func(h string) { s.objects.hosts[h] = addresses })
}

// ForgetHost removes a DNS name that no target needs any more.
func (s *Store) ForgetHost(host string) {
	s.changeHost(host, func(h string) { delete(s.objects.hosts, h) })
}

func (s *Store) changeHost(host string, change func(host string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	host = ir.CanonicalHost(host)
	change(host)
	p := newPending()
	p.ref(refHost, types.NamespacedName{Name: host})
	s.recompute(p, began)
}

// Hosts returns the DNS names whose addresses targets need, each with the sorted namespaces of these
// targets.
func (s *Store) Hosts() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]string{}
	for r, dependents := range s.byLookup {
		if r.kind != refHost {
			continue
		}
		var namespaces []string
		for c := range dependents {
			namespaces = append(namespaces, c.target.Namespace)
		}
		slices.Sort(namespaces)
		out[r.Name] = slices.Compact(namespaces)
	}
	return out
}

// HostsChanged returns a channel that receives a value when Hosts may have changed. It is
// for one reader.
func (s *Store) HostsChanged() <-chan struct{} { return s.hosts }

// hostsChanged notifies the reader of HostsChanged if a lookup that was added or removed is of a DNS
// name.
func (s *Store) hostsChanged(r ref) {
	if r.kind == refHost {
		notify(s.hosts)
	}
}

// notify sends a value unless one is waiting already.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

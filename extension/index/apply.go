// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

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

// Apply applies changes and builds one Snapshot of them. It returns an error for objects
// that cannot be parsed, and applies the others.
func (s *Store) Apply(changes ...Change) error {
	inputs := make([]*input, 0, len(changes))
	for _, c := range changes {
		inputs = append(inputs, newInput(s.Read(c)))
	}
	var errs []error
	s.update(func(p *pending) {
		for _, change := range inputs {
			if err := s.objects.put(change, p); err != nil {
				errs = append(errs, err)
			}
		}
	})
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

// update calls a function that changes objects and marks what they affect, and builds the next Snapshot. If
// nothing is marked, the Snapshot stays.
func (s *Store) update(change func(p *pending)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	began := time.Now()
	p := newPending()
	change(p)
	s.recompute(p, began)
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
	publishRoutes(s, e)
	if e.translate || e.policies || e.tlsPolicies || e.vacant {
		s.revise()
	}
	s.metrics.made(snapshot, e.translate, time.Since(began))
}

// recomputeDigests updates the digests of Gateways.
func recomputeDigests(s *Store, e *edit) {
	for _, k := range e.reshaped {
		current := ir.Sum(shapeSum(e.next.Targets.Get(k)))
		grown := current - s.digests.targets[k]
		if s.digests.targets[k] = current; current == 0 {
			delete(s.digests.targets, k)
		}
		for c := range s.namedBy[dependent{target: k}] {
			if _, ok := e.entries[c]; ok {
				continue
			}
			p := s.digests.parts[c]
			p.sum += grown
			replaceDigestPart(s, e, c, p)
		}
	}
	for c := range e.entries {
		replaceDigestPart(s, e, c, sections[c.section].digest(s, e, c))
	}
}

// Serve restricts the Store to the routes of some Gateways, because others have a separate
// extension, or this extension belongs to one Gateway. Targets that only other routes name
// are not known. Before the first call, and with nil, the Store serves all Gateways.
func (s *Store) Serve(serves func(gateway types.NamespacedName) bool) {
	if serves == nil {
		serves = everyGateway
	}
	s.update(func(p *pending) {
		s.objects.serves = serves
		for _, section := range sections {
			if section.serve != nil {
				section.serve(s.objects, p)
			}
		}
	})
}

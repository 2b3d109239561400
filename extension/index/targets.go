// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// targetObjects are the objects that targets are built from.
type targetObjects struct {
	services     map[types.NamespacedName]*gatewayv1alpha1.TailscaleServicesSpec
	endpoints    map[types.NamespacedName]*gatewayv1alpha1.TailscaleEndpointsSpec
	proxySets    group[*tailnetv1alpha1.ProxySetSpec]
	attachments  group[*tailnetv1alpha1.ServiceAttachment]
	kubeServices map[types.NamespacedName]*parse.Service
	slices       group[*parse.EndpointSlice]
	tls          [2]group[*gwapiv1.BackendTLSPolicy]

	// hosts are the addresses of DNS names.
	hosts map[string][]string

	// offline are the endpoints of a TailscaleEndpoints whose devices are offline.
	offline map[types.NamespacedName]map[string]bool

	// dialPolicy describes the hosts that Envoys may connect to without a proxy. owners has
	// the objects with an address, if Envoys may connect to any.
	dialPolicy DialPolicy
	owners     owners

	// placements are the results of probing targets.
	placements map[ir.TargetKey]ir.Placement

	// created are the times at which the objects of targets were created, and shares the endpoints that
	// targets may have.
	created map[ref]time.Time
	shares  *endpointShares

	// groups are the names under which an object of a group was stored. They may change with
	// the object.
	groups map[grouped][]types.NamespacedName
}

func newTargetObjects() targetObjects {
	return targetObjects{
		services:     map[types.NamespacedName]*gatewayv1alpha1.TailscaleServicesSpec{},
		endpoints:    map[types.NamespacedName]*gatewayv1alpha1.TailscaleEndpointsSpec{},
		proxySets:    group[*tailnetv1alpha1.ProxySetSpec]{},
		attachments:  group[*tailnetv1alpha1.ServiceAttachment]{},
		kubeServices: map[types.NamespacedName]*parse.Service{},
		slices:       group[*parse.EndpointSlice]{},
		tls:          [2]group[*gwapiv1.BackendTLSPolicy]{{}, {}},
		hosts:        map[string][]string{},
		offline:      map[types.NamespacedName]map[string]bool{},
		owners:       newOwners(),
		placements:   map[ir.TargetKey]ir.Placement{},
		created:      map[ref]time.Time{},
		shares:       newEndpointShares(),
		groups:       map[grouped][]types.NamespacedName{},
	}
}

// putTarget stores an object that targets are built from.
func putTarget(all *objects, change *input, p *pending) (bool, error) {
	n := change.name
	switch o := change.Object.(type) {
	case *gatewayv1alpha1.TailscaleServices:
		put(all.services, n, &o.Spec, change.Deleted)
		put(all.created, ref{kind: refServices, NamespacedName: n}, o.CreationTimestamp.Time, change.Deleted)
		putGrouped(all, p, all.publishers, refPublishers, n, n, change.Deleted, publishedServices(n, &o.Spec)...)
		p.ref(refServices, n)
	case *gatewayv1alpha1.TailscaleEndpoints:
		put(all.endpoints, n, &o.Spec, change.Deleted)
		put(all.created, ref{kind: refEndpoints, NamespacedName: n}, o.CreationTimestamp.Time, change.Deleted)
		offline := parse.OfflineEndpoints(o)
		put(all.offline, n, offline, change.Deleted || offline == nil)
		p.ref(refEndpoints, n)
	case *tailnetv1alpha1.ProxySet:
		putGrouped(all, p, all.proxySets, refProxySet, n, &o.Spec, change.Deleted, ir.Sibling(n, o.Spec.Endpoints))
	case *tailnetv1alpha1.ServiceAttachment:
		deleted := change.Deleted || o.Spec.Direction != tailnetv1alpha1.DirectionEgress
		putGrouped(all, p, all.attachments, refAttachments, n, o, deleted, ir.Sibling(n, o.Spec.Services))
		p.ref(refAttachment, n)
	case *corev1.Service:
		put(all.kubeServices, n, parse.ParseService(o), change.Deleted)
		all.setAddresses(grouped{kind: refService, NamespacedName: n}, n, unlessGone(change.Deleted, addressesOfService(o)), p)
		p.ref(refService, n)
	case *discoveryv1.EndpointSlice:
		s := o.Labels[discoveryv1.LabelServiceName]
		refused := func(a netip.Addr) bool { return all.dialPolicy.refused(a) != "" }
		putGrouped(all, p, all.slices, refSlices, n, parse.ParseEndpointSlice(o, refused), change.Deleted || s == "", ir.Sibling(n, s))
		all.setAddresses(grouped{kind: refSlices, NamespacedName: n}, ir.Sibling(n, s), unlessGone(change.Deleted, addressesOfSlice(o)), p)
	case *gwapiv1.BackendTLSPolicy:
		putTLSPolicy(all, o, change, p)
	case *gwapiv1beta1.ReferenceGrant:
		p.ref(refGrants, types.NamespacedName{Namespace: n.Namespace})
	default:
		return false, nil
	}
	return true, nil
}

// putGrouped stores an object of a group under the names that it shares with others, or
// removes a deleted object.
func putGrouped[T any](all *objects, p *pending, g group[T], k refKind, n types.NamespacedName, v T, deleted bool, shared ...types.NamespacedName) {
	id := grouped{kind: k, NamespacedName: n}
	for _, s := range all.groups[id] {
		g.unset(s, n)
		p.ref(k, s)
	}
	delete(all.groups, id)
	if deleted || len(shared) == 0 {
		return
	}
	all.groups[id] = shared
	for _, s := range shared {
		g.set(s, n, v)
		p.ref(k, s)
	}
}

// nameDependents records which dependents an entry named before and names now.
func nameDependents(s *Store, e *edit, c entry, old, current map[dependent]struct{}) {
	for named := range old {
		delete(s.namedBy[named], c)
		if len(s.namedBy[named]) == 0 {
			delete(s.namedBy, named)
			e.dependents[named] = struct{}{}
		}
	}
	for named := range current {
		if s.namedBy[named] == nil {
			s.namedBy[named] = map[entry]struct{}{}
			e.dependents[named] = struct{}{}
		}
		s.namedBy[named][c] = struct{}{}
	}
}

// recomputeTargets rebuilds the dependents that have lookups with a new result, and builds
// those that are named first. It drops those that are not named any more.
func recomputeTargets(s *Store, e *edit) {
	settleConfigMaps(s.objects, e.pending)
	for r := range e.pending.refs {
		for b := range s.byLookup[r] {
			e.dependents[b.dependent] = struct{}{}
		}
	}
	for k := range e.pending.targets {
		e.dependents[dependent{target: k}] = struct{}{}
	}
	pods := map[servedPort][]zonedEndpoint{}
	for c := range e.dependents {
		if len(s.namedBy[c]) == 0 {
			dropDependent(s, e, c)
			continue
		}
		rebuildDependent(s, e, c, pods)
	}
	for _, k := range s.objects.shares.settle() {
		rebuildDependent(s, e, dependent{target: k}, pods)
	}
}

// dropDependent removes a dependent.
func dropDependent(s *Store, e *edit, c dependent) {
	if b := s.built[c]; b != nil {
		for r := range b.lookups {
			forgetLookup(s, b, r)
		}
		delete(s.built, c)
	}
	e.endpoints[c] = struct{}{}
	if c.target == (ir.TargetKey{}) {
		e.next.Services.Delete(e.next, c.service)
		return
	}
	e.vacant = e.vacant || vacantPort(e.next.Targets.Get(c.target)) != nil
	e.lead(e.next.Targets.Get(c.target))
	delete(s.objects.placements, c.target)
	s.objects.shares.set(c.target, endpointSize{})
	e.resum(shapeSum(e.next.Targets.Get(c.target)), nil)
	e.reshaped = append(e.reshaped, c.target)
	e.next.Targets.Delete(e.next, c.target)
}

// rebuildDependent builds a dependent, and records what it looks up. pods are those that the edit has found.
func rebuildDependent(s *Store, e *edit, c dependent, pods map[servedPort][]zonedEndpoint) {
	v := s.objects.view(pods)
	if c.target == (ir.TargetKey{}) {
		rebuildService(e, v, c)
	} else {
		rebuildTarget(s, e, v, c)
	}
	b := s.built[c]
	if b == nil {
		b = &builtDependent{dependent: c}
		s.built[c] = b
	}
	for r := range b.lookups {
		if _, ok := v.lookups[r]; !ok {
			forgetLookup(s, b, r)
		}
	}
	for r := range v.lookups {
		if s.byLookup[r] == nil {
			s.byLookup[r] = map[*builtDependent]struct{}{}
		}
		if _, ok := s.byLookup[r][b]; !ok {
			s.hostsChanged(r)
		}
		s.byLookup[r][b] = struct{}{}
	}
	b.lookups = v.lookups
}

// forgetLookup records that a dependent does not depend on a lookup any more.
func forgetLookup(s *Store, b *builtDependent, r ref) {
	delete(s.byLookup[r], b)
	s.hostsChanged(r)
	if len(s.byLookup[r]) == 0 {
		delete(s.byLookup, r)
	}
}

func rebuildService(e *edit, v *view, c dependent) {
	protocol := corev1.ProtocolTCP
	if c.service.UDP {
		protocol = corev1.ProtocolUDP
	}
	endpoints, _, _ := v.serviceEndpoints(c.service.NamespacedName, c.service.Port, protocol)
	current := localities([]source{{name: c.service.Name, weight: 1, endpoints: endpoints}})
	old, ok := e.next.Services.Lookup(c.service)
	if ok && reflect.DeepEqual(old, current) {
		return
	}
	e.next.Services.Set(e.next, c.service, current)
	e.endpoints[c] = struct{}{}
}

func rebuildTarget(s *Store, e *edit, v *view, c dependent) {
	old := e.next.Targets.Get(c.target)
	current := v.build(c.target, old)
	s.objects.shares.set(c.target, v.size())
	if reflect.DeepEqual(old, current) {
		return
	}
	e.next.Targets.Set(e.next, c.target, current)
	e.endpoints[c] = struct{}{}
	if old == nil || old.Missing != current.Missing || old.Drains != current.Drains || !reflect.DeepEqual(old.Shape, current.Shape) {
		e.resum(shapeSum(old), shapeSum(current))
		e.reshaped = append(e.reshaped, c.target)
	}
	e.vacant = e.vacant || !reflect.DeepEqual(vacantPort(old), current.Vacant)
	if old != nil && old.Publisher != current.Publisher {
		e.lead(old)
	}
	if old == nil || old.Publisher != current.Publisher {
		e.lead(current)
	}
	e.tlsPolicies = e.tlsPolicies || old != nil && !slices.Equal(old.TLSPolicies, current.TLSPolicies)
}

// shapeSum returns the part of a target in digests.
func shapeSum(t *ir.Target) any {
	if t == nil {
		return nil
	}
	out := ir.Target{Key: t.Key, Shape: t.Shape, Missing: t.Missing}
	if t.Key.Kind == ir.TargetFailover {
		out.Drains = t.Drains
	}
	return out
}

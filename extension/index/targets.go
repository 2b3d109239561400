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
	configMaps   map[types.NamespacedName]parse.Authorities

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

// A grouped object is stored in a group.
type grouped struct {
	kind refKind
	types.NamespacedName
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
		configMaps:   map[types.NamespacedName]parse.Authorities{},
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
func (all *objects) putTarget(in *input, p *pending) (bool, error) {
	n := in.name
	switch o := in.Object.(type) {
	case *gatewayv1alpha1.TailscaleServices:
		put(all.services, n, &o.Spec, in.Gone)
		put(all.created, ref{kind: refServices, NamespacedName: n}, o.CreationTimestamp.Time, in.Gone)
		p.ref(refServices, n)
	case *gatewayv1alpha1.TailscaleEndpoints:
		put(all.endpoints, n, &o.Spec, in.Gone)
		put(all.created, ref{kind: refEndpoints, NamespacedName: n}, o.CreationTimestamp.Time, in.Gone)
		offline := parse.OfflineEndpoints(o)
		put(all.offline, n, offline, in.Gone || offline == nil)
		p.ref(refEndpoints, n)
	case *tailnetv1alpha1.ProxySet:
		putGrouped(all, p, all.proxySets, refProxySet, n, &o.Spec, in.Gone, ir.Sibling(n, o.Spec.Endpoints))
	case *tailnetv1alpha1.ServiceAttachment:
		gone := in.Gone || o.Spec.Direction != tailnetv1alpha1.DirectionEgress
		putGrouped(all, p, all.attachments, refAttachments, n, o, gone, ir.Sibling(n, o.Spec.Services))
		p.ref(refAttachment, n)
	case *corev1.Service:
		put(all.kubeServices, n, parse.ParseService(o), in.Gone)
		all.claim(grouped{kind: refService, NamespacedName: n}, n, unlessGone(in.Gone, addressesOfService(o)), p)
		p.ref(refService, n)
	case *discoveryv1.EndpointSlice:
		s := o.Labels[discoveryv1.LabelServiceName]
		refused := func(a netip.Addr) bool { return all.dialPolicy.refused(a) != "" }
		putGrouped(all, p, all.slices, refSlices, n, parse.ParseEndpointSlice(o, refused), in.Gone || s == "", ir.Sibling(n, s))
		all.claim(grouped{kind: refSlices, NamespacedName: n}, ir.Sibling(n, s), unlessGone(in.Gone, addressesOfSlice(o)), p)
	case *corev1.ConfigMap:
		put(all.configMaps, n, parse.ParseAuthorities(o.Data), in.Gone)
		p.ref(refConfigMap, n)
	case *gwapiv1.BackendTLSPolicy:
		all.putTLSPolicy(o, in, p)
	case *gwapiv1beta1.ReferenceGrant:
		p.ref(refGrants, types.NamespacedName{Namespace: n.Namespace})
	default:
		return false, nil
	}
	return true, nil
}

// putGrouped stores an object of a group under the names that it shares with others, or
// removes a deleted object.
func putGrouped[T any](all *objects, p *pending, g group[T], k refKind, n types.NamespacedName, v T, gone bool, shared ...types.NamespacedName) {
	id := grouped{kind: k, NamespacedName: n}
	for _, s := range all.groups[id] {
		g.unset(s, n)
		p.ref(k, s)
	}
	delete(all.groups, id)
	if gone || len(shared) == 0 {
		return
	}
	all.groups[id] = shared
	for _, s := range shared {
		g.set(s, n, v)
		p.ref(k, s)
	}
}

// A consumer is built from other objects: a target, or the endpoints of a Service that a
// rule names in addition to one of our kinds. One of the fields is set.
type consumer struct {
	target  ir.TargetKey
	service ir.ServicePort
}

// name records which consumers a contributor named before and names now.
func (s *Store) name(e *edit, c contributor, old, now map[consumer]struct{}) {
	for of := range old {
		delete(s.namedBy[of], c)
		if len(s.namedBy[of]) == 0 {
			delete(s.namedBy, of)
			e.consumers[of] = struct{}{}
		}
	}
	for of := range now {
		if s.namedBy[of] == nil {
			s.namedBy[of] = map[contributor]struct{}{}
			e.consumers[of] = struct{}{}
		}
		s.namedBy[of][c] = struct{}{}
	}
}

// recomputeTargets rebuilds the consumers that have lookups with a new result, and builds
// those that are named first. It drops those that are not named any more.
func (s *Store) recomputeTargets(e *edit) {
	for r := range e.pending.refs {
		for of := range s.dependents[r] {
			e.consumers[of] = struct{}{}
		}
	}
	for k := range e.pending.targets {
		e.consumers[consumer{target: k}] = struct{}{}
	}
	for of := range e.consumers {
		if len(s.namedBy[of]) == 0 {
			s.drop(e, of)
			continue
		}
		s.rebuild(e, of)
	}
	for _, k := range s.objects.shares.settle() {
		s.rebuild(e, consumer{target: k})
	}
}

// drop removes a consumer.
func (s *Store) drop(e *edit, of consumer) {
	for r := range s.lookups[of] {
		s.forget(of, r)
	}
	delete(s.lookups, of)
	e.endpoints = append(e.endpoints, of)
	if of.target == (ir.TargetKey{}) {
		e.next.Services.Delete(e.next, of.service)
		return
	}
	delete(s.objects.placements, of.target)
	s.objects.shares.set(of.target, endpointSize{})
	e.resum(shapeSum(e.next.Targets.Get(of.target)), nil)
	e.reshaped = append(e.reshaped, of.target)
	e.next.Targets.Delete(e.next, of.target)
}

// rebuild builds a consumer, and records what it looks up.
func (s *Store) rebuild(e *edit, of consumer) {
	v := s.objects.view()
	if of.target == (ir.TargetKey{}) {
		s.rebuildService(e, v, of)
	} else {
		s.rebuildTarget(e, v, of)
	}
	for r := range s.lookups[of] {
		if _, ok := v.lookups[r]; !ok {
			s.forget(of, r)
		}
	}
	for r := range v.lookups {
		if s.dependents[r] == nil {
			s.dependents[r] = map[consumer]struct{}{}
		}
		if _, ok := s.dependents[r][of]; !ok {
			s.hostsChanged(r)
		}
		s.dependents[r][of] = struct{}{}
	}
	s.lookups[of] = v.lookups
}

// forget records that a consumer does not depend on a lookup any more.
func (s *Store) forget(of consumer, r ref) {
	delete(s.dependents[r], of)
	s.hostsChanged(r)
	if len(s.dependents[r]) == 0 {
		delete(s.dependents, r)
	}
}

func (s *Store) rebuildService(e *edit, v *view, of consumer) {
	protocol := corev1.ProtocolTCP
	if of.service.UDP {
		protocol = corev1.ProtocolUDP
	}
	endpoints, _, _ := v.serviceEndpoints(of.service.NamespacedName, of.service.Port, protocol)
	now := localities([]source{{name: of.service.Name, weight: 1, endpoints: endpoints}})
	old, ok := e.next.Services.Lookup(of.service)
	if ok && reflect.DeepEqual(old, now) {
		return
	}
	e.next.Services.Set(e.next, of.service, now)
	e.endpoints = append(e.endpoints, of)
}

func (s *Store) rebuildTarget(e *edit, v *view, of consumer) {
	now := v.build(of.target)
	s.objects.shares.set(of.target, v.size())
	old := e.next.Targets.Get(of.target)
	if reflect.DeepEqual(old, now) {
		return
	}
	e.next.Targets.Set(e.next, of.target, now)
	if old == nil || old.Missing != now.Missing || !reflect.DeepEqual(old.Shape, now.Shape) {
		e.resum(shapeSum(old), shapeSum(now))
		e.reshaped = append(e.reshaped, of.target)
	}
	if old == nil || !reflect.DeepEqual(old.Localities, now.Localities) {
		e.endpoints = append(e.endpoints, of)
	}
	e.tlsPolicies = e.tlsPolicies || old != nil && !slices.Equal(old.TLSPolicies, now.TLSPolicies)
}

// shapeSum returns the part of a target in digests.
func shapeSum(t *ir.Target) any {
	if t == nil {
		return nil
	}
	return ir.Target{Key: t.Key, Shape: t.Shape, Missing: t.Missing}
}

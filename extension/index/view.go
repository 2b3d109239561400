// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A refKind is a kind of lookup.
type refKind int

// Kinds of lookups.
const (
	refServices refKind = iota
	refEndpoints
	// refProxySet is the ProxySet of a TailscaleEndpoints, by the latter's name.
	refProxySet
	// refAttachments are the ServiceAttachments of a TailscaleServices, by the latter's name.
	refAttachments
	// refAttachment is a ServiceAttachment, by its own name.
	refAttachment
	refService
	// refSlices are the EndpointSlices of a Service, by the latter's name.
	refSlices
	// refServicesTLS and refEndpointsTLS are the BackendTLSPolicies of an object.
	refServicesTLS
	refEndpointsTLS
	refConfigMap
	// refHost is a DNS name.
	refHost
	// refAddress are the owners of an address, and refGrants the ReferenceGrants of a
	// namespace.
	refAddress
	refGrants
	// refPublishers are the TailscaleServices whose backend is a Service, by the latter's name.
	refPublishers
)

// A ref is a lookup, with or without a result.
type ref struct {
	kind refKind
	types.NamespacedName
}

// A view reads objects for one target, and records the lookups.
type view struct {
	*objects

	lookups map[ref]struct{}

	// pods are those that views of the same edit have found. They must not be changed.
	pods map[servedPort][]zonedEndpoint

	// creation is the time of the target's object, count the number of endpoints without a limit, and
	// beyond says that some are left out.
	creation time.Time
	count    int
	beyond   string

	// drains reports that the target's object is handed to other clusters, which come before this one.
	drains bool

	// awaited reports that a ConfigMap of the target's BackendTLSPolicy is not known yet.
	awaited bool
}

// size returns the size of the target that was built.
func (v *view) size() endpointSize {
	return endpointSize{created: v.creation, endpoints: v.count}
}

func (all *objects) view(pods map[servedPort][]zonedEndpoint) *view {
	return &view{objects: all, lookups: map[ref]struct{}{}, pods: pods}
}

// lookup records a lookup and returns its name.
func (v *view) lookup(k refKind, n types.NamespacedName) types.NamespacedName {
	v.lookups[ref{kind: k, NamespacedName: n}] = struct{}{}
	return n
}

// proxySet returns the ProxySet of a TailscaleEndpoints, or nil.
func (v *view) proxySet(n types.NamespacedName) *tailnetv1alpha1.ProxySetSpec {
	if sets := v.proxySets.sorted(v.lookup(refProxySet, n)); len(sets) > 0 {
		return sets[0]
	}
	return nil
}

// A dependent is built from other objects: a target, or the endpoints of a Service that a
// rule names in addition to one of our kinds. One of the fields is set.
type dependent struct {
	target  ir.TargetKey
	service ir.ServicePort
}

// A builtDependent is a dependent with its lookups. A dependent is a large key, and the least map has room
// for eight, so byLookup has pointers.
type builtDependent struct {
	dependent
	lookups map[ref]struct{}
}

// A grouped object is stored in a group.
type grouped struct {
	kind refKind
	types.NamespacedName
}

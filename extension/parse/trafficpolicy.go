// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"cmp"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// PolicyTargets are the targets of an Envoy Gateway policy (envoyproxy/gateway
// api/v1alpha1/policy_helpers.go, PolicyTargetReferences). Importing Envoy Gateway's own
// types would import all of Envoy Gateway.
type PolicyTargets struct {
	Spec struct {
		TargetRef       *gwapiv1.LocalPolicyTargetReferenceWithSectionName  `json:"targetRef,omitempty"`
		TargetRefs      []gwapiv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs,omitempty"`
		TargetSelectors []PolicySelector                                    `json:"targetSelectors,omitempty"`
	} `json:"spec"`
}

// A PolicySelector selects the targets of a policy by labels.
type PolicySelector struct {
	Group            *gwapiv1.Group                    `json:"group,omitempty"`
	Kind             gwapiv1.Kind                      `json:"kind"`
	MatchLabels      map[string]string                 `json:"matchLabels,omitempty"`
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
	Namespaces       *struct {
		From string `json:"from"`
	} `json:"namespaces,omitempty"`
}

// routeSettings are the fields of a BackendTrafficPolicy that do not change clusters: the
// targets, and the settings that Envoy applies to a request before it selects an endpoint
// (envoyproxy/gateway internal/ir/xds.go: TrafficFeatures without ClusterTrafficFeatures). A
// field that is missing here costs only a cluster.
var routeSettings = map[string]bool{
	"targetRef": true, "targetRefs": true, "targetSelectors": true, "mergeType": true,
	"retry": true, "rateLimit": true, "bandwidthLimit": true, "faultInjection": true, "compression": true, "compressor": true,
	"responseOverride": true, "httpUpgrade": true, "requestBuffer": true, "telemetry": true,
}

// routeTimeouts are the fields of timeout.http that are settings of routes.
var routeTimeouts = map[string]bool{
	"requestTimeout": true, "streamIdleTimeout": true, "maxStreamDuration": true,
}

// clusterSettings reports whether a policy has settings of clusters.
func clusterSettings(o *unstructured.Unstructured) bool {
	spec, _ := o.Object["spec"].(map[string]any)
	timeout, _ := spec["timeout"].(map[string]any)
	http, _ := timeout["http"].(map[string]any)
	for k := range spec {
		if k != "timeout" && !routeSettings[k] {
			return true
		}
	}
	for k := range timeout {
		if k != "http" {
			return true
		}
	}
	for k := range http {
		if !routeTimeouts[k] {
			return true
		}
	}
	return false
}

// sameNamespace is the default of a selector's namespaces.
const sameNamespace = "Same"

// A TrafficPolicy is the part of a BackendTrafficPolicy that the extension needs.
type TrafficPolicy struct {
	name    types.NamespacedName
	created time.Time

	// refs are the rules of routes, by name. The empty name stands for all rules.
	refs      map[ir.RouteKey][]string
	selectors []routeSelector

	// Places are the Gateways, ListenerSets and listeners that the policy is attached to.
	// Those that it selects by labels are not known: labels of Gateways are not read.
	Places map[Parent]bool

	tuning ir.Tuning

	// shapes reports that the policy has settings of clusters.
	shapes bool

	// merges reports that unset fields are taken from the policy above.
	merges bool
}

// A routeSelector selects routes by labels.
type routeSelector struct {
	kind     ir.RouteKind
	selector labels.Selector

	// namespace of the routes. Empty means any.
	namespace string
}

// ParseTrafficPolicy parses a BackendTrafficPolicy.
func ParseTrafficPolicy(o *unstructured.Unstructured) (*TrafficPolicy, error) {
	t, spec := PolicyTargets{}, policySpec{}
	for _, dst := range []any{&t, &spec} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, dst); err != nil {
			return nil, errors.Wrap(err, "cannot decode")
		}
	}
	p := &TrafficPolicy{
		name:    types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()},
		created: o.GetCreationTimestamp().Time,
		refs:    map[ir.RouteKey][]string{},
		Places:  map[Parent]bool{},
		tuning:  spec.tuning(),
		merges:  spec.Spec.MergeType != "",
		shapes:  clusterSettings(o),
	}
	refs := t.Spec.TargetRefs
	if t.Spec.TargetRef != nil {
		refs = []gwapiv1.LocalPolicyTargetReferenceWithSectionName{*t.Spec.TargetRef}
	}
	for _, r := range refs {
		if r.Group != gwapiv1.GroupName {
			continue
		}
		n, section := types.NamespacedName{Namespace: o.GetNamespace(), Name: string(r.Name)}, string(ptr.Deref(r.SectionName, ""))
		if r.Kind == KindGateway || r.Kind == kindListenerSet {
			p.Places[Parent{ListenerSet: r.Kind == kindListenerSet, NamespacedName: n, Section: section}] = true
		}
		if kind, ok := ir.RouteKinds[string(r.Kind)]; ok {
			k := ir.RouteKey{Kind: kind, NamespacedName: n}
			p.refs[k] = append(p.refs[k], section)
		}
	}
	for _, s := range t.Spec.TargetSelectors {
		kind, ok := ir.RouteKinds[string(s.Kind)]
		if !ok || ptr.Deref(s.Group, gwapiv1.GroupName) != gwapiv1.GroupName {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions})
		if err != nil {
			return nil, errors.Wrap(err, "cannot read spec.targetSelectors")
		}
		rs := routeSelector{kind: kind, selector: selector, namespace: o.GetNamespace()}
		if s.Namespaces != nil && s.Namespaces.From != sameNamespace {
			// The selected namespaces, and whether they permit the selection, depend on
			// further objects. A route that is pinned without need costs only a cluster.
			rs.namespace = ""
		}
		p.selectors = append(p.selectors, rs)
	}
	return p, nil
}

// PinnedRules returns the names of the rules of a route for whose clusters the policy has
// settings. It returns nil if there are none, and for a nil policy.
func (p *TrafficPolicy) PinnedRules(r *RouteObject) []string {
	if p == nil || !p.shapes {
		return nil
	}
	return p.Rules(r)
}

// Rules returns the names of a route's rules that the policy is attached to. It returns nil
// if there are none.
func (p *TrafficPolicy) Rules(r *RouteObject) []string {
	k := r.Route.Key
	out := p.refs[k]
	for _, s := range p.selectors {
		if s.kind == k.Kind && (s.namespace == "" || s.namespace == k.Namespace) && s.selector.Matches(labels.Set(r.Labels)) {
			return append(slices.Clone(out), "")
		}
	}
	return out
}

// maxZones is the number of zones of a policy with weights above which their weights do not apply.
// The zones are part of a list's name, whose length the endpoint server limits.
const maxZones = 32

// A policySpec is the part of a BackendTrafficPolicy about endpoint lists and HTTP/2. The
// preference of near zones is also in the cluster, where hooks see it.
type policySpec struct {
	Spec struct {
		MergeType   string `json:"mergeType,omitempty"`
		HealthCheck struct {
			Active struct {
				Overrides struct {
					Port int32 `json:"port,omitempty"`
				} `json:"overrides"`
			} `json:"active"`
		} `json:"healthCheck"`
		LoadBalancer struct {
			ZoneAware struct {
				WeightedZones []struct {
					Zone   string `json:"zone"`
					Weight int64  `json:"weight"`
				} `json:"weightedZones,omitempty"`
			} `json:"zoneAware"`
		} `json:"loadBalancer"`
		HTTP2 http2Spec `json:"http2"`
	} `json:"spec"`
}

// tuning returns the tuning of the policy. It drops zones with names that no node can have: they are
// values of a label.
func (p *policySpec) tuning() ir.Tuning {
	t := ir.Tuning{HealthPort: uint32(min(max(p.Spec.HealthCheck.Active.Overrides.Port, 0), math.MaxUint16)), HTTP2: p.Spec.HTTP2.settings()}
	for _, z := range p.Spec.LoadBalancer.ZoneAware.WeightedZones {
		if z.Zone != "" && len(validation.IsValidLabelValue(z.Zone)) == 0 {
			t.Zones = append(t.Zones, ir.ZoneWeight{Zone: z.Zone, Weight: uint32(min(max(z.Weight, 0), math.MaxUint32))})
		}
	}
	if len(t.Zones) > maxZones {
		t.Zones = nil
	}
	slices.SortFunc(t.Zones, func(a, b ir.ZoneWeight) int { return cmp.Compare(a.Zone, b.Zone) })
	return t
}

// OlderThan reports whether the policy takes precedence over another one of the same target,
// as in Envoy Gateway.
func (p *TrafficPolicy) OlderThan(o *TrafficPolicy) bool {
	return cmp.Or(p.created.Compare(o.created), ir.CompareNames(p.name, o.name)) < 0
}

// MergeOver returns the tuning of the policy together with that of the parent policy. The
// policy applies alone unless its mergeType asks for a merge. Either policy may be nil.
func (p *TrafficPolicy) MergeOver(parent *TrafficPolicy) ir.Tuning {
	switch {
	case p == nil && parent == nil:
		return ir.Tuning{}
	case p == nil:
		return parent.tuning
	case parent == nil || !p.merges:
		return p.tuning
	}
	t := p.tuning
	t.HealthPort = cmp.Or(t.HealthPort, parent.tuning.HealthPort)
	if t.Zones == nil {
		t.Zones = parent.tuning.Zones
	}
	t.HTTP2 = t.HTTP2.MergeOver(parent.tuning.HTTP2)
	return t
}

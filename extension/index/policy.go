// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// PolicyTargets say what a policy of Envoy Gateway is attached to
// (envoyproxy/gateway api/v1alpha1/policy_helpers.go, PolicyTargetReferences). Its
// own types would bring all of Envoy Gateway along.
type PolicyTargets struct {
	Spec struct {
		TargetRef       *gwapiv1.LocalPolicyTargetReferenceWithSectionName  `json:"targetRef,omitempty"`
		TargetRefs      []gwapiv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs,omitempty"`
		TargetSelectors []PolicySelector                                    `json:"targetSelectors,omitempty"`
	} `json:"spec"`
}

// A PolicySelector picks what a policy is attached to by labels.
type PolicySelector struct {
	Group            *gwapiv1.Group                    `json:"group,omitempty"`
	Kind             gwapiv1.Kind                      `json:"kind"`
	MatchLabels      map[string]string                 `json:"matchLabels,omitempty"`
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
	Namespaces       *struct {
		From string `json:"from"`
	} `json:"namespaces,omitempty"`
}

// routeSettings are the parts of a BackendTrafficPolicy that no cluster is made of: what
// it is attached to, and what Envoy does with a request before it picks an endpoint
// (envoyproxy/gateway internal/ir/xds.go: TrafficFeatures without ClusterTrafficFeatures).
// One that is missing here only costs a cluster.
var routeSettings = map[string]bool{ //nolint:gochecknoglobals // A constant map.
	"targetRef": true, "targetRefs": true, "targetSelectors": true, "mergeType": true,
	"retry": true, "rateLimit": true, "bandwidthLimit": true, "faultInjection": true, "compression": true, "compressor": true,
	"responseOverride": true, "httpUpgrade": true, "requestBuffer": true, "telemetry": true,
}

// routeTimeouts are those of timeout.http that are a route's.
var routeTimeouts = map[string]bool{ //nolint:gochecknoglobals // A constant map.
	"requestTimeout": true, "streamIdleTimeout": true, "maxStreamDuration": true,
}

// clusterSettings reports whether a policy has any.
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

// sameNamespace is what a selector's namespaces are when it does not say.
const sameNamespace = "Same"

// A trafficPolicy is a BackendTrafficPolicy, as far as anything here needs it.
type trafficPolicy struct {
	name    types.NamespacedName
	created time.Time

	// refs are the rules of routes, by name. The empty one stands for all.
	refs      map[RouteKey][]string
	selectors []routeSelector

	// places are the Gateways, ListenerSets and listeners that it is attached to. Those
	// that it picks by label are not known: Gateways are not watched.
	places map[parent]bool

	tuning Tuning

	// shapes reports that it has settings of clusters.
	shapes bool

	// merges reports that what it does not say is taken from the policy above.
	merges bool
}

// A routeSelector picks routes by label.
type routeSelector struct {
	kind     RouteKind
	selector labels.Selector

	// namespace of the routes. Empty means any.
	namespace string
}

func parseTrafficPolicy(o *unstructured.Unstructured) (*trafficPolicy, error) {
	t, spec := PolicyTargets{}, policySpec{}
	for _, into := range []any{&t, &spec} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
			return nil, errors.Wrap(err, "cannot decode")
		}
	}
	p := &trafficPolicy{
		name:    types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()},
		created: o.GetCreationTimestamp().Time,
		refs:    map[RouteKey][]string{},
		places:  map[parent]bool{},
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
		if r.Kind == kindGateway || r.Kind == kindListenerSet {
			p.places[parent{listenerSet: r.Kind == kindListenerSet, NamespacedName: n, section: section}] = true
		}
		if kind, ok := routeKinds[string(r.Kind)]; ok {
			k := RouteKey{Kind: kind, NamespacedName: n}
			p.refs[k] = append(p.refs[k], section)
		}
	}
	for _, s := range t.Spec.TargetSelectors {
		kind, ok := routeKinds[string(s.Kind)]
		if !ok || ptr.Deref(s.Group, gwapiv1.GroupName) != gwapiv1.GroupName {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions})
		if err != nil {
			return nil, errors.Wrap(err, "cannot read spec.targetSelectors")
		}
		rs := routeSelector{kind: kind, selector: selector, namespace: o.GetNamespace()}
		if s.Namespaces != nil && s.Namespaces.From != sameNamespace {
			// Which namespaces it means, and whether they allow it, needs more
			// objects. To pin a route too many costs a cluster, and nothing else.
			rs.namespace = ""
		}
		p.selectors = append(p.selectors, rs)
	}
	return p, nil
}

// pins are the rules of a route whose clusters the policy has settings of. Nil means
// none, and so it is for no policy.
func (p *trafficPolicy) pins(r *parsedRoute) []string {
	if p == nil || !p.shapes {
		return nil
	}
	return p.rules(r)
}

// rules of a route that the policy is attached to. Nil means none.
func (p *trafficPolicy) rules(r *parsedRoute) []string {
	k := r.route.Key
	out := p.refs[k]
	for _, s := range p.selectors {
		if s.kind == k.Kind && (s.namespace == "" || s.namespace == k.Namespace) && s.selector.Matches(labels.Set(r.labels)) {
			return append(slices.Clone(out), "")
		}
	}
	return out
}

// pinned are the rules of a route that any policy pins. Nil means none.
func (w *world) pinned(r *parsedRoute) map[string]bool {
	var out map[string]bool
	for _, p := range w.policies {
		for _, rule := range p.pins(r) {
			if out == nil {
				out = map[string]bool{}
			}
			out[rule] = true
		}
	}
	return out
}

// Keys of a BackendTLSPolicy's certificates.
const (
	caKey         = "ca.crt"
	kindConfigMap = "ConfigMap"
)

// tlsRefs are the kinds of lookups for the policies of each kind of ours.
var tlsRefs = map[gwapiv1.Kind]refKind{ //nolint:gochecknoglobals // A constant map.
	kindTailscaleServices:  refServicesTLS,
	kindTailscaleEndpoints: refEndpointsTLS,
}

func (w *world) putTLSPolicy(o *gwapiv1.BackendTLSPolicy, n types.NamespacedName, gone bool, d *dirty) {
	shared := map[refKind][]types.NamespacedName{}
	for _, t := range o.Spec.TargetRefs {
		if k, ok := tlsRefs[t.Kind]; ok && t.Group == gatewayv1alpha1.Group {
			shared[k] = append(shared[k], sibling(n, string(t.Name)))
		}
	}
	for _, k := range []refKind{refServicesTLS, refEndpointsTLS} {
		file(w, d, w.tls[k-refServicesTLS], k, n, o, gone, shared[k]...)
	}
}

// tlsOf a target, by the BackendTLSPolicy that is attached to it: one for its port
// goes before one for all, then the older one does, then the first by name. A
// section's name is the port's number.
func (v *view) tlsOf(k TargetKey) (*UpstreamTLS, string) {
	kind, refs := gwapiv1.Kind(kindTailscaleServices), refServicesTLS
	if k.Kind == TargetEndpoints {
		kind, refs = kindTailscaleEndpoints, refEndpointsTLS
	}
	var best *gwapiv1.BackendTLSPolicy
	exact := false
	for _, p := range v.tls[refs-refServicesTLS].sorted(v.saw(refs, types.NamespacedName{Namespace: k.Namespace, Name: k.Name})) {
		for _, t := range p.Spec.TargetRefs {
			if t.Group != gatewayv1alpha1.Group || t.Kind != kind || string(t.Name) != k.Name {
				continue
			}
			section := string(ptr.Deref(t.SectionName, ""))
			if section != "" && section != strconv.Itoa(int(k.Port)) {
				continue
			}
			better := best == nil || section != "" && !exact ||
				(section != "") == exact && p.CreationTimestamp.Before(&best.CreationTimestamp)
			if better {
				best, exact = p, section != ""
			}
		}
	}
	if best == nil {
		return nil, ""
	}
	return v.upstreamTLS(best)
}

// upstreamTLS that a policy asks for, or what is wrong with it: then nothing may be
// sent.
func (v *view) upstreamTLS(p *gwapiv1.BackendTLSPolicy) (*UpstreamTLS, string) {
	name := "BackendTLSPolicy " + p.Namespace + "/" + p.Name
	val := p.Spec.Validation
	out := &UpstreamTLS{ServerName: string(val.Hostname)}
	for _, n := range val.SubjectAltNames {
		if n.Type == gwapiv1.URISubjectAltNameType {
			out.AltNames = append(out.AltNames, AltName{URI: true, Value: string(n.URI)})
			continue
		}
		out.AltNames = append(out.AltNames, AltName{Value: string(n.Hostname)})
	}
	for _, r := range val.CACertificateRefs {
		if r.Group != "" || r.Kind != kindConfigMap {
			return nil, name + " has a certificate that is not in a ConfigMap; put it into one, with the key " + caKey
		}
		ca := v.configMaps[v.saw(refConfigMap, types.NamespacedName{Namespace: p.Namespace, Name: string(r.Name)})]
		if ca == "" {
			return nil, name + " names ConfigMap " + string(r.Name) + ", which has no key " + caKey + "; add it"
		}
		out.CA += ca
		if ca[len(ca)-1] != '\n' {
			out.CA += "\n"
		}
	}
	if out.CA == "" && ptr.Deref(val.WellKnownCACertificates, "") != gwapiv1.WellKnownCACertificatesSystem {
		return nil, name + " has neither caCertificateRefs nor wellKnownCACertificates System; set one"
	}
	return out, ""
}

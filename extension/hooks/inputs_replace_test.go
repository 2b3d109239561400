//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A replacement selects the references to Services that become references to Tailscale backends.
type replacement string

const (
	replaceNone   replacement = "none"
	replaceSecond replacement = "second"
	replaceAll    replacement = "all"
)

const oursGroup = "gateway.tailscale.com"

// A replaced input names Tailscale backends instead of some Services.
type replaced struct {
	*input

	// ours are the rules that name a Tailscale backend.
	ours map[ruleKey]bool

	// wanted are the ports that references name, by kind, namespace and name.
	wanted map[[3]string]map[int64]bool

	// objects of our kinds.
	objects []object
}

// replace replaces references of routes. The result shares nothing with the input.
func (doc *input) replace(mode replacement) *replaced {
	out := &replaced{
		input: &input{name: doc.name, sections: map[string][]object{}, single: doc.single, features: doc.features},
		ours:  map[ruleKey]bool{}, wanted: map[[3]string]map[int64]bool{},
	}
	for s, os := range doc.sections {
		for _, o := range os {
			out.add(s, runtime.DeepCopyJSON(jsonOf(o)))
		}
	}
	n := 0
	for _, section := range slices.Sorted(maps.Keys(routeSections())) {
		for _, o := range out.sections[section] {
			ns, name := nameOf(o)
			k := ruleKey{route: ir.RouteKey{Kind: routeKindOf(routeSections()[section]), NamespacedName: nn(ns, name)}}
			for i, rule := range list(o, "spec", "rules") {
				k.rule = i
				for _, ref := range references(rule) {
					if !isService(ref) {
						continue
					}
					if n++; mode == replaceAll || mode == replaceSecond && n%2 == 0 {
						out.ours[k] = true
						out.name(ref, ns)
					}
				}
			}
		}
	}
	if mode != replaceNone {
		out.permit()
	}
	out.make()
	return out
}

// routeKindOf returns a kind as Envoy Gateway's names and the index write it.
func routeKindOf(kind string) ir.RouteKind { return ir.RouteKind(strings.ToLower(kind)) }

// references returns the references of a rule to backends and mirrors, and copies of them.
func references(rule object) []object {
	out := list(rule, "backendRefs")
	for _, f := range list(rule, "filters") {
		if m, ok := f["requestMirror"].(object); ok {
			if ref, ok := m["backendRef"].(object); ok {
				out = append(out, ref)
			}
		}
	}
	return out
}

func isService(ref object) bool {
	kind, named := ref["kind"]
	group, _ := ref["group"].(string)
	return group == "" && (!named || kind == "Service")
}

// name replaces a reference: one Service becomes a TailscaleEndpoints, the others become
// TailscaleServices.
func (r *replaced) name(ref object, namespace string) {
	kind := "TailscaleServices"
	if ref["name"] == "service-3" {
		kind = "TailscaleEndpoints"
	}
	ref["group"], ref["kind"] = oursGroup, kind
	if ns, ok := ref["namespace"].(string); ok {
		namespace = ns
	}
	name, _ := ref["name"].(string)
	k := [3]string{kind, namespace, name}
	if r.wanted[k] == nil {
		r.wanted[k] = map[int64]bool{}
	}
	if p, ok := ref["port"].(int64); ok {
		r.wanted[k][p] = true
	}
}

// permit extends ReferenceGrants and policies for Services to the Tailscale backends.
func (r *replaced) permit() {
	for _, g := range r.sections["referenceGrants"] {
		refs, _ := g["spec"].(object)["to"].([]any)
		for _, o := range list(g, "spec", "to") {
			if o["kind"] != "Service" {
				continue
			}
			for _, k := range []string{"TailscaleServices", "TailscaleEndpoints"} {
				entry := runtime.DeepCopyJSON(o)
				entry["group"], entry["kind"] = oursGroup, k
				refs = append(refs, entry)
			}
		}
		g["spec"].(object)["to"] = refs
	}
	for _, p := range r.sections["backendTLSPolicies"] {
		refs, _ := p["spec"].(object)["targetRefs"].([]any)
		for _, o := range list(p, "spec", "targetRefs") {
			if o["kind"] != "Service" {
				continue
			}
			for _, k := range []string{"TailscaleServices", "TailscaleEndpoints"} {
				entry := runtime.DeepCopyJSON(o)
				entry["group"], entry["kind"] = oursGroup, k
				delete(entry, "sectionName")
				refs = append(refs, entry)
			}
		}
		p["spec"].(object)["targetRefs"] = refs
	}
}

// make creates the named objects: a TailscaleServices has the Service of its name as backend, a
// TailscaleEndpoints a device of the tailnet.
func (r *replaced) make() {
	byName := func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }
	for _, k := range slices.SortedFunc(maps.Keys(r.wanted), byName) {
		meta := object{"namespace": k[1], "name": k[2]}
		o := object{"apiVersion": oursGroup + "/v1alpha1", "kind": k[0], "metadata": meta}
		var backends, ports, endpoints, targets []any
		for _, p := range slices.Sorted(maps.Keys(r.wanted[k])) {
			backends = append(backends, object{"name": k[2], "port": p, "vipPort": p})
			ports = append(ports, fmt.Sprintf("tcp:%d", p))
			name := fmt.Sprintf("at-%d", p)
			endpoints = append(endpoints, object{"name": name, "tailscaleFQDN": "a.tail1.ts.net", "port": p})
			targets = append(targets,
				object{"name": fmt.Sprintf("%s/%d", name, p), "port": p, "protocol": "TCP", "proxyPort": 10000 + p%1000, "weight": int64(1)},
				object{"name": fmt.Sprintf("%s/%d/udp", name, p), "port": p, "protocol": "UDP", "proxyPort": 10000 + p%1000, "weight": int64(1)})
		}
		if o["spec"] = (object{"selector": object{}, "vipService": object{"ports": ports}, "backends": backends}); k[0] == "TailscaleEndpoints" {
			o["spec"] = object{"tailnet": "corp", "proxy": object{"connectionType": "egress"}, "endpoints": endpoints}
			out := k[2] + "-out"
			r.objects = append(r.objects, object{
				"apiVersion": "tailnet.gateway.tailscale.com/v1alpha1", "kind": "ProxySet", "metadata": object{"namespace": k[1], "name": k[2]},
				"spec": object{"endpoints": k[2], "tailnet": "corp", "sets": []any{object{"name": out, "direction": "Egress", "replicas": int64(1)}}, "targets": targets},
			})
			r.objects = append(r.objects, object{"apiVersion": "v1", "kind": "Service", "metadata": object{"namespace": k[1], "name": out}, "spec": object{"clusterIP": "None", "ipFamilies": []any{"IPv4"}}})
			r.objects = append(r.objects, object{
				"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": object{"namespace": k[1], "name": out + "-1", "labels": object{"kubernetes.io/service-name": out}},
				"addressType": "IPv4", "ports": []any{object{"name": "agent", "port": int64(9093), "protocol": "TCP"}},
				"endpoints": []any{object{"addresses": []any{"10.1.0.1"}, "conditions": object{"ready": true, "serving": true}}},
			})
		}
		r.objects = append(r.objects, o)
		// Envoy Gateway loads the kinds of an extension from this section.
		r.add("extensionRefFilters", o)
	}
	for _, g := range r.sections["gateways"] {
		ns, name := nameOf(g)
		r.add("extensionServerPolicies", object{
			"apiVersion": oursGroup + "/v1alpha1", "kind": "TailscaleRevision", "metadata": object{"namespace": ns, "name": name},
			"spec": object{"revision": "some", "targetRefs": []any{object{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name}}},
		})
	}
}

// list returns the objects at a path.
func list(o object, path ...string) []object {
	var v any = o
	for _, p := range path {
		fields, _ := v.(object)
		v = fields[p]
	}
	items, _ := v.([]any)
	var out []object
	for _, e := range items {
		if e, ok := e.(object); ok {
			out = append(out, e)
		}
	}
	return out
}

// jsonOf returns an object with the number types that runtime.DeepCopyJSON accepts.
func jsonOf(o object) object {
	out, _ := numbers(o).(object)
	return out
}

func numbers(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for k, e := range v {
			out[k] = numbers(e)
		}
		for _, k := range []string{"sectionName", "value"} {
			// Some inputs write a name, or its value, as a number.
			if n, ok := out[k].(int64); ok && (k == "sectionName" || out["name"] != nil) {
				out[k] = strconv.FormatInt(n, 10)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, numbers(e))
		}
		return out
	case []object:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, numbers(e))
		}
		return out
	case int:
		return int64(v)
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

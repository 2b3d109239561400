//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"hash/fnv"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// indexed returns the sections that the index reads, by kind.
func indexed() map[string]string {
	out := maps.Clone(routeSections())
	maps.Copy(out, map[string]string{
		"gateways": "Gateway", "listenerSets": "ListenerSet", "referenceGrants": "ReferenceGrant", "backendTLSPolicies": "BackendTLSPolicy",
		"backendTrafficPolicies": "BackendTrafficPolicy", "services": "Service", "endpointSlices": "EndpointSlice", "configMaps": "ConfigMap",
		"envoyProxiesForGateways": "EnvoyProxy",
	})
	return out
}

// known returns the objects of an input that the index reads.
func (r *replaced) known() []object {
	var out []object
	for _, s := range slices.Sorted(maps.Keys(indexed())) {
		out = append(out, r.sections[s]...)
	}
	return append(out, r.objects...)
}

// storeOf returns a store that holds the objects.
func storeOf(t *testing.T, os []object) *index.Store {
	t.Helper()
	s := index.NewStore()
	s.SetDialPolicy(index.DialPolicy{Direct: true})
	kinds := parse.Kinds()
	maps.Copy(kinds, parse.BootstrapKinds())
	kinds[parse.KindConfigMap] = &corev1.ConfigMap{}
	var cs []index.Change
	for _, o := range os {
		kind, _ := o["kind"].(string)
		prototype := kinds[kind]
		if prototype == nil {
			t.Fatalf("the index does not read %q: %v", kind, o["metadata"])
		}
		typed, ok := prototype.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%s is no object", kind)
		}
		if u, ok := typed.(*unstructured.Unstructured); ok {
			u.Object = o
		} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o, typed); err != nil {
			t.Fatalf("%s %v: %v", kind, o["metadata"], err)
		}
		if c, ok := typed.(*corev1.ConfigMap); ok {
			state, err := s.ReadConfigMap(client.ObjectKeyFromObject(c), c)
			if err != nil {
				t.Fatal(err)
			}
			s.SetConfigMap(client.ObjectKeyFromObject(c), &state)
			continue
		}
		cs = append(cs, index.Change{Object: typed})
	}
	if err := s.Apply(cs...); err != nil {
		t.Logf("the index omits an object: %v", err)
	}
	return s
}

// A replica describes the knowledge of one replica of the extension when a message arrives.
type replica struct {
	name  string
	store *index.Store

	// ours are the rules with Tailscale backends in the replica's objects or in the message. whole
	// reports that all rules of their routes may change, because the two may have different rules.
	ours  map[ruleKey]bool
	whole bool

	// otherwise reports that references have other kinds than in the message. Tailscale backends
	// then get the weights that the message leaves for them.
	otherwise bool

	// policed reports that each Gateway has the policies of policiesFor.
	policed bool
}

// replicas returns the replicas that get the messages of an input. same are replicas of the same
// input with other replacements.
func (r *replaced) replicas(t *testing.T, same ...*replaced) []replica {
	t.Helper()
	objs := r.known()
	out := []replica{
		{name: "served", store: storeOf(t, objs), ours: r.ours},
		{name: "fresh", store: storeOf(t, nil), ours: map[ruleKey]bool{}},
		{name: "nothing", store: storeOf(t, slices.DeleteFunc(slices.Clone(objs), func(o object) bool {
			kind := o["kind"]
			return kind == "TailscaleServices" || kind == "TailscaleEndpoints"
		})), ours: r.ours},
		{name: "lagging", store: storeOf(t, lagging(objs)), ours: r.ours, whole: true},
		{name: "policies", store: storeOf(t, append(slices.Clone(objs), policiesFor(r.sections["gateways"])...)), ours: r.ours, policed: true},
	}
	for i, o := range same {
		both := maps.Clone(r.ours)
		maps.Copy(both, o.ours)
		out = append(out, replica{name: []string{"other", "another"}[i], store: storeOf(t, o.known()), ours: both, whole: true, otherwise: true})
	}
	return out
}

// lagging returns the objects of a replica that lacks the newest ones, and whose routes have one
// rule less.
func lagging(os []object) []object {
	var out []object
	for _, o := range os {
		ns, name := nameOf(o)
		kind, _ := o["kind"].(string)
		h := fnv.New32a()
		_, _ = h.Write([]byte(kind + "/" + ns + "/" + name))
		switch n := h.Sum32() % 4; {
		case n == 0:
			continue
		case n == 1 && len(list(o, "spec", "rules")) > 1:
			o = runtime.DeepCopyJSON(o)
			spec, _ := o["spec"].(object)
			rules, _ := spec["rules"].([]any)
			spec["rules"] = rules[1:]
		}
		out = append(out, o)
	}
	return out
}

// deniedHeader is the header that each Gateway's Deny matches.
const deniedHeader = "x-denied"

// policiesFor returns policies with one rule of each action for each Gateway.
func policiesFor(gateways []object) []object {
	header := func(name string) []any { return []any{object{"headers": []any{object{"name": name, "value": "yes"}}}} }
	var out []object
	for _, g := range gateways {
		ns, name := nameOf(g)
		out = append(out, object{
			"apiVersion": oursGroup + "/v1alpha1", "kind": "TailscaleRoutePolicy", "metadata": object{"namespace": ns, "name": "of-" + name},
			"spec": object{
				"targetRefs": []any{object{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": name}},
				"rules": []any{
					object{"name": "denied", "priority": int64(10), "matches": header(deniedHeader), "actions": []any{object{"type": "Deny"}}},
					object{"name": "closed", "matches": []any{object{
						"path": object{"value": "/closed"}, "tailnetDevice": object{"addresses": []any{"100.64.0.0/10"}},
					}}, "actions": []any{object{"type": "Deny"}}},
					object{"name": "limited", "matches": header("x-limited"), "actions": []any{object{"type": "RateLimit", "rateLimit": object{"requests": int64(3), "unit": "Second"}}}},
					object{"name": "sent", "matches": header("x-sent"), "actions": []any{
						object{"type": "Route", "route": object{"backendRefs": []any{object{"name": "elsewhere", "port": int64(80)}, object{"name": "gone", "port": int64(80)}}}},
						object{"type": "RequestHeaderModifier", "requestHeaderModifier": object{"set": []any{object{"name": "x-by", "value": "policy"}}}},
					}},
					object{"name": "moved", "matches": []any{object{"path": object{"type": "RegularExpression", "value": "/old/.*"}}}, "actions": []any{
						object{"type": "Redirect", "redirect": object{"path": "/new"}},
					}},
					object{"name": "slow", "matches": []any{object{"method": "POST"}}, "actions": []any{object{"type": "Timeouts", "timeouts": object{"request": "60s"}}}},
				},
			},
		}, object{
			"apiVersion": oursGroup + "/v1alpha1", "kind": "TailscaleServices", "metadata": object{"namespace": ns, "name": "elsewhere"},
			"spec": object{"selector": object{}, "vipService": object{"ports": []any{"tcp:80"}}, "backends": []any{object{"name": "elsewhere", "port": int64(80)}}},
		})
	}
	return out
}

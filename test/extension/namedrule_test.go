//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// namesRules has requests handled by a rule of another route, with what Envoy Gateway's own
// policies say of that.
func namesRules(t *testing.T, w *world) {
	example := examplesOf(t, "route-policy-rule.yaml")
	attachTo(t, example[1], "gw")
	route := example[1].DeepCopy()
	for _, u := range example {
		w.create(t, u)
	}
	key := http.Header{"X-Api-Key": {"change-me"}}
	orders := asked{path: "orders/1"}

	t.Run("Protected", func(t *testing.T) {
		w.until(t, w.asks(orders, "401"))
		w.until(t, w.asks(asked{path: "orders/1", header: http.Header{"X-Api-Key": {"other"}}}, "401"))
		w.until(t, w.asks(asked{path: "orders/1", header: key}, "200 /orders/1 no"))
		w.saysOfRule(t, "orders", "others", "")
		w.until(t, w.explainsPolicy("web.example.com", "default/orders others: as rule careful of HTTPRoute default/careful"))
	})
	t.Run("ByDevice", func(t *testing.T) {
		w.until(t, w.asks(asked{by: operator, path: "orders/1"}, "200 /orders/1 yes"))
		w.until(t, w.asks(asked{by: stranger, path: "orders/1"}, "401"))
	})
	t.Run("Limited", func(t *testing.T) {
		w.until(t, w.asks(asked{path: "orders/1", header: key}, "429"))
		// What has no key is not counted, nor what others ask for.
		for what, check := range map[string]func(context.Context) error{
			"without a key":    w.asks(orders, "401"),
			"of the route":     w.asks(asked{path: "other"}, "200 /other "),
			"of another rule":  w.asks(asked{by: operator, path: "orders/1"}, "200 /orders/1 yes"),
			"of the rule":      w.asks(asked{host: "careful.invalid", path: "orders/1", header: key}, "200 /orders/1 no"),
			"of other routes":  w.asks(asked{host: "plain.example.com", path: "orders/1"}, "200 /orders/1 "),
			"of its listeners": w.asks(asked{by: stranger, path: "orders/1", header: key}, "200 /orders/1 no"),
		} {
			if err := check(within(t)); err != nil {
				t.Errorf("requests %s are limited or changed: %v", what, err)
			}
		}
	})
	t.Run("Closed", func(t *testing.T) { closesNamed(t, w) })
	t.Run("Inherits", func(t *testing.T) { inherits(t, w) })
	t.Run("Gone", func(t *testing.T) {
		w.remove(t, example[1])
		w.until(t, w.asks(orders, "500"))
		w.saysOfRule(t, "orders", "others", "Requests are answered 500: HTTPRoute default/careful does not exist")
		if err := w.asks(asked{path: "other"}, "200 /other ")(within(t)); err != nil {
			t.Errorf("the route is not served: %v", err)
		}
		w.create(t, route)
		w.until(t, w.asks(orders, "401"))
		w.saysOfRule(t, "orders", "others", "")
	})
	for _, u := range example {
		w.remove(t, u)
	}
	w.until(t, w.asks(orders, "200 /orders/1 "))
}

// closesNamed rules to who asks for their hostname: policies of their route do not count
// for what another one has them handle.
func closesNamed(t *testing.T, w *world) {
	w.create(t, policyOf(t, `{targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: careful}], rules: [{name: a, actions: [{type: Deny}]}]}`, "closed"))
	key := http.Header{"X-Api-Key": {"change-me"}}
	w.until(t, w.asks(asked{by: stranger, host: "careful.invalid", path: "orders/1", header: key}, "403"))
	if err := w.asks(asked{by: stranger, path: "orders/1", header: key}, "200 /orders/1 no")(within(t)); err != nil {
		t.Errorf("what a route sends there is denied: %v", err)
	}
	w.remove(t, policyNamed("closed"))
}

// inherits what a policy of the Gateway says, unless a policy of the named rule's route says
// something else: what is attached to the base route counts for it alone.
func inherits(t *testing.T, w *world) {
	authorize := func(kind, name, action string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
			"metadata": map[string]any{"name": "authorizes-" + name, "namespace": "default"},
			"spec": map[string]any{
				"targetRefs":    []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": kind, "name": name}},
				"authorization": map[string]any{"defaultAction": action},
			},
		}}
	}
	gateway, route := authorize("Gateway", "gw", "Deny"), authorize("HTTPRoute", "web", "Allow")
	w.create(t, policyOf(t, `{targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}], rules: [
{name: a, matches: [{path: {value: /inherits}}], actions: [{type: Route, route: {rule: {name: plain, sectionName: plain}}}]}]}`, "inherits"))
	inherits := asked{path: "inherits"}
	w.until(t, w.asks(inherits, "200 /inherits "))
	w.create(t, route)
	w.create(t, gateway)
	w.until(t, w.asks(inherits, "403"))
	w.until(t, w.asks(asked{path: "other"}, "200 /other "))
	// The key is the named rule's own policy, which the Gateway's does not add to.
	w.until(t, w.asks(asked{path: "orders/1"}, "401"))
	w.remove(t, gateway)
	w.until(t, w.asks(inherits, "200 /inherits "))
	w.remove(t, route)
	w.remove(t, policyNamed("inherits"))
}

// attachTo a Gateway of the tests instead of the example's.
func attachTo(t *testing.T, u *unstructured.Unstructured, gateway string) {
	t.Helper()
	if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": gateway}}, "spec", "parentRefs"); err != nil {
		t.Fatal(err)
	}
}

// saysOfRule waits until a policy's status says so of a rule that acts.
func (w *world) saysOfRule(t *testing.T, policy, rule, want string) {
	t.Helper()
	w.until(t, func(ctx context.Context) error {
		p, err := w.policy(ctx, policy)
		if err != nil {
			return err
		}
		for _, r := range p.Status.Rules {
			if r.Name == rule && r.Active && r.Message == want {
				return nil
			}
		}
		return errors.Errorf("rules of %s: want %s to be active and to say %q, got %+v", policy, rule, want, p.Status.Rules)
	})
}

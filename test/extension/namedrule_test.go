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

// namesRules checks that a rule of another route handles requests, with Envoy Gateway's policies
// for that rule.
func namesRules(t *testing.T, w *environment) {
	example := examplesOf(t, "route-policy-rule.yaml")
	attachTo(t, example[1], "gw")
	route := example[1].DeepCopy()
	for _, u := range example {
		w.create(t, u)
	}
	key := http.Header{"X-Api-Key": {"change-me"}}
	orders := query{path: "orders/1"}

	t.Run("Protected", func(t *testing.T) {
		w.until(t, w.responds(orders, "401"))
		w.until(t, w.responds(query{path: "orders/1", header: http.Header{"X-Api-Key": {"other"}}}, "401"))
		w.until(t, w.responds(query{path: "orders/1", header: key}, "200 /orders/1 no"))
		w.ruleHasMessage(t, "orders", "others", "")
		w.until(t, w.explainsPolicy("web.example.com", "default/orders others: as rule careful of HTTPRoute default/careful"))
	})
	t.Run("ByDevice", func(t *testing.T) {
		w.until(t, w.responds(query{client: operator, path: "orders/1"}, "200 /orders/1 yes"))
		w.until(t, w.responds(query{client: stranger, path: "orders/1"}, "401"))
	})
	t.Run("Limited", func(t *testing.T) {
		w.until(t, w.responds(query{path: "orders/1", header: key}, "429"))
		// Requests without a key do not count for the limit, nor those of other clients.
		for description, check := range map[string]func(context.Context) error{
			"without a key":    w.responds(orders, "401"),
			"of the route":     w.responds(query{path: "other"}, "200 /other "),
			"of another rule":  w.responds(query{client: operator, path: "orders/1"}, "200 /orders/1 yes"),
			"of the rule":      w.responds(query{host: "careful.invalid", path: "orders/1", header: key}, "200 /orders/1 no"),
			"of other routes":  w.responds(query{host: "plain.example.com", path: "orders/1"}, "200 /orders/1 "),
			"of its listeners": w.responds(query{client: stranger, path: "orders/1", header: key}, "200 /orders/1 no"),
		} {
			if err := check(within(t)); err != nil {
				t.Errorf("requests %s are limited or changed: %v", description, err)
			}
		}
	})
	t.Run("Closed", func(t *testing.T) { closesNamed(t, w) })
	t.Run("Inherits", func(t *testing.T) { inherits(t, w) })
	t.Run("Deleted", func(t *testing.T) {
		w.remove(t, example[1])
		w.until(t, w.responds(orders, "500"))
		w.ruleHasMessage(t, "orders", "others", "Requests are answered 500: HTTPRoute default/careful does not exist")
		if err := w.responds(query{path: "other"}, "200 /other ")(within(t)); err != nil {
			t.Errorf("the route is not served: %v", err)
		}
		w.create(t, route)
		w.until(t, w.responds(orders, "401"))
		w.ruleHasMessage(t, "orders", "others", "")
	})
	for _, u := range example {
		w.remove(t, u)
	}
	w.until(t, w.responds(orders, "200 /orders/1 "))
}

// closesNamed checks the clients that send requests to the hostname of named rules: policies of
// their route do not apply to the requests that another route sends there.
func closesNamed(t *testing.T, w *environment) {
	w.create(t, policyOf(t, `{targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: careful}], rules: [{name: a, actions: [{type: Deny}]}]}`, "closed"))
	key := http.Header{"X-Api-Key": {"change-me"}}
	w.until(t, w.responds(query{client: stranger, host: "careful.invalid", path: "orders/1", header: key}, "403"))
	if err := w.responds(query{client: stranger, path: "orders/1", header: key}, "200 /orders/1 no")(within(t)); err != nil {
		t.Errorf("what a route sends there is denied: %v", err)
	}
	w.remove(t, policyNamed("closed"))
}

// inherits checks that a policy of the Gateway applies, unless the named rule's route has a policy:
// policies of the base route apply to that route only.
func inherits(t *testing.T, w *environment) {
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
	inherits := query{path: "inherits"}
	w.until(t, w.responds(inherits, "200 /inherits "))
	w.create(t, route)
	w.create(t, gateway)
	w.until(t, w.responds(inherits, "403"))
	w.until(t, w.responds(query{path: "other"}, "200 /other "))
	// The named rule's own policy requires the key. The Gateway's does not add to it.
	w.until(t, w.responds(query{path: "orders/1"}, "401"))
	w.remove(t, gateway)
	w.until(t, w.responds(inherits, "200 /inherits "))
	w.remove(t, route)
	w.remove(t, policyNamed("inherits"))
}

// attachTo attaches a policy to a Gateway of the tests instead of the example's.
func attachTo(t *testing.T, u *unstructured.Unstructured, gateway string) {
	t.Helper()
	if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": gateway}}, "spec", "parentRefs"); err != nil {
		t.Fatal(err)
	}
}

// ruleHasMessage waits until a policy's status has this message for an active rule.
func (w *environment) ruleHasMessage(t *testing.T, policy, rule, want string) {
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
		return errors.Errorf("rules of %s: want %s to be active with %q, got %+v", policy, rule, want, p.Status.Rules)
	})
}

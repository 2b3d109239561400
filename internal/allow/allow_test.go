// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package allow

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestNamespace(t *testing.T) {
	selects := func(s *metav1.LabelSelector) *tailnetv1alpha1.AllowedNamespaces {
		return &tailnetv1alpha1.AllowedNamespaces{From: tailnetv1alpha1.NamespacesFromSelector, Selector: s}
	}
	list := func(names ...string) *tailnetv1alpha1.AllowedNamespaces {
		return &tailnetv1alpha1.AllowedNamespaces{From: tailnetv1alpha1.NamespacesFromList, Names: names}
	}
	cases := map[string]struct {
		reason   string
		allowed  *tailnetv1alpha1.AllowedNamespaces
		want     bool
		byLabels bool
		invalid  bool
	}{
		"Nil":       {reason: "Without restrictions, all namespaces are allowed.", want: true},
		"Default":   {reason: "Empty restrictions allow all namespaces.", allowed: &tailnetv1alpha1.AllowedNamespaces{}, want: true},
		"All":       {reason: "From All allows all namespaces.", allowed: &tailnetv1alpha1.AllowedNamespaces{From: tailnetv1alpha1.NamespacesFromAll}, want: true},
		"Listed":    {reason: "Listed namespaces are allowed.", allowed: list("blog", "shop"), want: true},
		"NotListed": {reason: "Other namespaces are not allowed.", allowed: list("blog")},
		"NoList":    {reason: "An empty list allows none.", allowed: list()},
		"Match":     {reason: "Namespaces that match the selector are allowed.", allowed: selects(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}), want: true, byLabels: true},
		"NoMatch":   {reason: "Namespaces that do not match the selector are not allowed.", allowed: selects(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "blog"}}), byLabels: true},
		"Empty":     {reason: "An empty selector allows all.", allowed: selects(&metav1.LabelSelector{}), want: true, byLabels: true},
		"Missing":   {reason: "A missing selector allows none.", allowed: selects(nil), byLabels: true},
		"Invalid":   {reason: "An invalid selector allows none.", allowed: selects(&metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}), byLabels: true, invalid: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Namespace(tc.allowed, "shop", map[string]string{"team": "shop"})
			if got != tc.want || (err != nil) != tc.invalid {
				t.Errorf("\n%s\nNamespace(...): want %t, got %t, %v", tc.reason, tc.want, got, err)
			}
			if got := ByLabels(tc.allowed); got != tc.byLabels {
				t.Errorf("\n%s\nByLabels(...): want %t, got %t", tc.reason, tc.byLabels, got)
			}
		})
	}
}

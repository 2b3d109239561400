// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package allow decides which namespaces may use a tailnet, and for what. Functions and the
// provider share it, so that their decisions are equal.
package allow

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/selector"
)

// ByLabels reports whether the decision needs the labels of a namespace.
func ByLabels(a *tailnetv1alpha1.AllowedNamespaces) bool {
	switch {
	case a == nil:
		return false
	case a.From == tailnetv1alpha1.NamespacesFromSelector:
		return true
	case a.From == tailnetv1alpha1.NamespacesFromGrants:
		return slices.ContainsFunc(a.Grants, func(g tailnetv1alpha1.NamespaceGrant) bool { return g.Selector != nil && !matchesAll(g.Selector) })
	}
	return false
}

func matchesAll(s *metav1.LabelSelector) bool {
	return len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// Namespace reports whether a namespace with this name and these labels may use a tailnet. Nil
// allows all. An invalid selector is an error, and allows none.
func Namespace(a *tailnetv1alpha1.AllowedNamespaces, name string, l map[string]string) (bool, error) {
	g, err := Of(a, nil, name, l)
	return g != nil, err
}

// Of returns the grant of a namespace with this name and these labels, or nil if it may not use
// the tailnet. common are the tailnet's default tags. An invalid selector is an error, because
// it could belong to the entry that applies.
func Of(a *tailnetv1alpha1.AllowedNamespaces, common []tailnetv1alpha1.Tag, name string, l map[string]string) (*Grant, error) {
	if a == nil {
		return &Grant{common: common}, nil
	}
	whole := &Grant{common: common, domains: a.Domains}
	switch a.From {
	case tailnetv1alpha1.NamespacesFromList:
		if !slices.Contains(a.Names, name) {
			return nil, nil // Not allowed is an answer.
		}
	case tailnetv1alpha1.NamespacesFromSelector:
		s, err := selector.Of(a.Selector)
		if err != nil || !s.Matches(labels.Set(l)) {
			return nil, err
		}
	case tailnetv1alpha1.NamespacesFromGrants:
		g, err := first(a.Grants, common, name, l)
		if g != nil && len(g.limits.Domains) == 0 {
			g.domains = a.Domains
		}
		return g, err
	case tailnetv1alpha1.NamespacesFromAll:
	}
	return whole, nil
}

// first returns the first entry that matches a namespace, or nil.
func first(grants []tailnetv1alpha1.NamespaceGrant, common []tailnetv1alpha1.Tag, name string, l map[string]string) (*Grant, error) {
	for i := range grants {
		g := &grants[i]
		if len(g.Names) > 0 && !slices.Contains(g.Names, name) {
			continue
		}
		if g.Selector != nil {
			s, err := selector.Of(g.Selector)
			if err != nil {
				return nil, err
			}
			if !s.Matches(labels.Set(l)) {
				continue
			}
		}
		if len(g.Names) == 0 && g.Selector == nil {
			// The schema refuses an entry without names and selector. It matches no namespace.
			continue
		}
		return &Grant{limits: *g, path: fmt.Sprintf("spec.allowedNamespaces.grants[%d]", i), common: common}, nil
	}
	return nil, nil // Not allowed is an answer.
}

// SelectorPath returns the path of the selector of a tailnet, for messages.
func SelectorPath(a *tailnetv1alpha1.AllowedNamespaces) string {
	if a != nil && a.From == tailnetv1alpha1.NamespacesFromGrants {
		return "spec.allowedNamespaces.grants"
	}
	return "spec.allowedNamespaces.selector"
}

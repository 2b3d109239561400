// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package allow tells which namespaces may use a tailnet. Functions and the provider ask
// it, so that they cannot differ.
package allow

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/selector"
)

// ByLabels tells whether the labels of a namespace decide, which then must be known.
func ByLabels(a *tailnetv1alpha1.AllowedNamespaces) bool {
	return a != nil && a.From == tailnetv1alpha1.NamespacesFromSelector
}

// Namespace tells whether one of this name and these labels may use a tailnet. Nil allows
// all. A selector that cannot be read is an error, and allows none.
func Namespace(a *tailnetv1alpha1.AllowedNamespaces, name string, l map[string]string) (bool, error) {
	if a == nil {
		return true, nil
	}
	switch a.From {
	case tailnetv1alpha1.NamespacesFromList:
		return slices.Contains(a.Names, name), nil
	case tailnetv1alpha1.NamespacesFromSelector:
		s, err := selector.Of(a.Selector)
		return err == nil && s.Matches(labels.Set(l)), err
	case tailnetv1alpha1.NamespacesFromAll:
	}
	return true, nil
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package selector reads label selectors.
package selector

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Of labels. Nil selects nothing. Of several mistakes the error always
// tells the same one: Kubernetes takes them in the order of a map, and a message
// that changes from run to run would be a change.
func Of(s *metav1.LabelSelector) (labels.Selector, error) {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err == nil {
		return out, nil
	}
	ordered := &metav1.LabelSelector{}
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		ordered.MatchExpressions = append(ordered.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: k, Operator: metav1.LabelSelectorOpIn, Values: []string{s.MatchLabels[k]},
		})
	}
	ordered.MatchExpressions = append(ordered.MatchExpressions, s.MatchExpressions...)
	return metav1.LabelSelectorAsSelector(ordered)
}

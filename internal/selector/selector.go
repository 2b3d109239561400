// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package selector parses label selectors.
package selector

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Of returns the selector of a LabelSelector. Nil selects nothing. If there are several errors,
// it always returns the same one: Kubernetes reads them in the order of a map, and a message
// that changes from run to run would cause an update.
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

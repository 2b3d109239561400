// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		input  *metav1.LabelSelector
		want   bool
		err    string
	}{
		"Nil":   {reason: "No selector selects nothing."},
		"Empty": {reason: "An empty selector selects all.", input: &metav1.LabelSelector{}, want: true},
		"Match": {reason: "Labels and expressions must match.", want: true, input: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}},
		}},
		"Expression": {reason: "One expression that does not match is enough.", input: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: metav1.LabelSelectorOpDoesNotExist}},
		}},
		"Operator": {reason: "The error names the operator.", err: `"Near" is not a valid label selector operator`, input: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Near"}},
		}},
		"Mistakes": {reason: "The error is always the first of several ones.", err: "not a 1", input: &metav1.LabelSelector{
			MatchLabels: map[string]string{"a": "not a 1", "b": "not a 2", "c": "not a 3", "d": "not a 4"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				s, err := Of(tc.input)
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Fatalf("%s: want the error %q, got %v", tc.reason, tc.err, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if got := s.Matches(labels.Set{"app": "web", "zone": "b"}); got != tc.want {
					t.Fatalf("%s: want %t, got %t", tc.reason, tc.want, got)
				}
			}
		})
	}
}

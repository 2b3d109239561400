// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// TestNoted checks which questions are asked again while an installation starts.
func TestNoted(t *testing.T) {
	resource := schema.GroupResource{Group: tailnetKind.Group, Resource: "tailscaletailnets"}
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Answered":  {reason: "An answer is no failure."},
		"Forbidden": {reason: "Nobody waits for an object that the caller may not read.", err: kerrors.NewForbidden(resource, "example", nil)},
		"Absent":    {reason: "An object that does not exist is an answer.", err: kerrors.NewNotFound(resource, "example")},
		"NoKind":    {reason: "So is a kind that does not exist.", err: &apimeta.NoKindMatchError{}},
		"Stale":     {reason: "Any other error may pass.", err: errors.New("the list of kinds is stale"), want: "the list of kinds is stale"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := noted(&got, func() (int, error) { return 0, tc.err })(); !errors.Is(err, tc.err) {
				t.Errorf("\n%s\nnoted(...): want the error %v, got %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nnoted(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

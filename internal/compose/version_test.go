// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
)

// TestPinVersion checks when the status is for the observed version alone.
func TestPinVersion(t *testing.T) {
	composite := `{"apiVersion": "example.org/v1", "kind": "App", "metadata": {"name": "a", "uid": "1", "resourceVersion": "7"}}`
	child := func(kind string) *fnv1.Resource {
		return &fnv1.Resource{Resource: resource.MustStructJSON(`{"apiVersion": "v1", "kind": "` + kind + `", "metadata": {"name": "c"}}`)}
	}
	pinned := resource.MustStructJSON(`{"apiVersion": "example.org/v1", "kind": "App", "metadata": {"resourceVersion": "7"}}`)
	cases := map[string]struct {
		reason    string
		composite string
		observed  map[string]*fnv1.Resource
		desired   *fnv1.State
		step      step
		want      *fnv1.Resource
	}{
		"Same": {
			reason:   "The children stay the same, so Crossplane writes nothing before the status.",
			observed: map[string]*fnv1.Resource{"c": child("ConfigMap")},
			want:     &fnv1.Resource{Resource: pinned},
		},
		"Metadata": {
			reason:   "Fields of an earlier function of the pipeline stay.",
			observed: map[string]*fnv1.Resource{"c": child("ConfigMap")},
			desired:  &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{"metadata": {"labels": {"a": "b"}}, "status": {"x": "y"}}`)}},
			want: &fnv1.Resource{Resource: resource.MustStructJSON(`{
				"apiVersion": "example.org/v1", "kind": "App", "metadata": {"resourceVersion": "7", "labels": {"a": "b"}}, "status": {"x": "y"}
			}`)},
		},
		"Added":     {reason: "The reference to a new child makes a new version."},
		"Removed":   {reason: "The reference to a child that goes makes a new version.", observed: map[string]*fnv1.Resource{"c": child("ConfigMap"), "d": child("ConfigMap")}},
		"Renamed":   {reason: "A child in the place of another is a new reference.", observed: map[string]*fnv1.Resource{"d": child("ConfigMap")}},
		"Changed":   {reason: "A reference has the kind of its child.", observed: map[string]*fnv1.Resource{"c": child("Secret")}},
		"Step":      {reason: "Other steps of the pipeline change children, too.", observed: map[string]*fnv1.Resource{"c": child("ConfigMap")}, step: step{hasInput: true}},
		"NoVersion": {reason: "crossplane render has objects that have no version.", composite: `{"apiVersion": "example.org/v1", "kind": "App"}`, observed: map[string]*fnv1.Resource{"c": child("ConfigMap")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.composite == "" {
				tc.composite = composite
			}
			r := NewRun(&fnv1.RunFunctionRequest{
				Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(tc.composite)}, Resources: tc.observed},
				Desired:  tc.desired,
			})
			*r.step = tc.step
			if err := r.reply.compose("c", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, true); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.Response().GetDesired().GetComposite(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

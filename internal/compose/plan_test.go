// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
)

func TestRender(t *testing.T) {
	existing := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}`
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "shop"}}
	condition := Condition{Type: "Accepted", Status: True, Reason: "Fine", Message: "It is"}
	set := []*fnv1.Condition{{
		Type: "Accepted", Status: fnv1.Status_STATUS_CONDITION_TRUE, Reason: "Fine", Message: new("It is"),
		Target: fnv1.Target_TARGET_COMPOSITE_AND_CLAIM.Enum(),
	}}
	waiting := []*fnv1.Condition{{
		Type: "Accepted", Status: fnv1.Status_STATUS_CONDITION_UNKNOWN, Reason: string(ReasonWaiting), Message: new("Wait"),
		Target: fnv1.Target_TARGET_COMPOSITE_AND_CLAIM.Enum(),
	}}
	retained := map[string]*fnv1.Resource{"a": {Ready: fnv1.Ready_READY_FALSE, Resource: resource.MustStructJSON(existing)}}
	xr := `{"apiVersion": "example.org/v1", "kind": "App"}`

	cases := map[string]struct {
		reason string
		plan   Plan
		want   *fnv1.RunFunctionResponse
	}{
		"Children": {
			reason: "Children that the plan does not list are deleted",
			plan:   Plan{Conditions: []Condition{condition}, Children: []Child{{Name: "b", Object: created, Ready: true}}},
			want: &fnv1.RunFunctionResponse{Conditions: set, Desired: &fnv1.State{Resources: map[string]*fnv1.Resource{
				"b": {Ready: fnv1.Ready_READY_TRUE, Resource: resource.MustStructJSON(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "shop"}}`)},
			}}},
		},
		"KeepExisting": {
			reason: "Existing children replace those of the plan",
			plan:   Plan{KeepExisting: true, Children: []Child{{Name: "b", Object: created, Ready: true}}},
			want:   &fnv1.RunFunctionResponse{Desired: &fnv1.State{Resources: retained}},
		},
		"Wait": {
			reason: "Without an input conditions are unknown, and nothing changes",
			plan:   Wait("Wait", "Accepted"),
			want:   &fnv1.RunFunctionResponse{Conditions: waiting, Desired: &fnv1.State{Resources: retained}},
		},
		"NotReady": {
			reason: "A composite without children would be ready",
			plan:   Plan{NotReady: true, RequeueAfter: RequeueInterval},
			want: &fnv1.RunFunctionResponse{
				Meta:    &fnv1.ResponseMeta{Ttl: durationpb.New(RequeueInterval)},
				Desired: &fnv1.State{Composite: &fnv1.Resource{Ready: fnv1.Ready_READY_FALSE, Resource: resource.MustStructJSON(xr)}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := NewRun(&fnv1.RunFunctionRequest{Observed: &fnv1.State{
				Composite: &fnv1.Resource{Resource: resource.MustStructJSON(xr)},
				Resources: map[string]*fnv1.Resource{"a": {Resource: resource.MustStructJSON(existing)}},
			}})
			if err := tc.plan.Render(r); err != nil {
				t.Fatal(err)
			}
			if tc.want.GetMeta() == nil {
				tc.want.Meta = &fnv1.ResponseMeta{Ttl: durationpb.New(0)}
			}
			if diff := cmp.Diff(tc.want, r.Response(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRender(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdd(t *testing.T) {
	ready := Children{}
	ready.Add("a", &corev1.ConfigMap{}, true)
	a := Child{Name: "a", Object: &corev1.ConfigMap{}, Ready: true}
	cases := map[string]struct {
		reason string
		parts  []Children
		want   Plan
	}{
		"Complete":   {reason: "The children of all parts are desired, in order.", parts: []Children{ready, ready}, want: Plan{Children: []Child{a, a}}},
		"Incomplete": {reason: "A part without all its children makes the composite not ready.", parts: []Children{{Incomplete: true}, ready}, want: Plan{NotReady: true, Children: []Child{a}}},
		"Requeue":    {reason: "One part asks for another run.", parts: []Children{{Requeue: true}, ready}, want: Plan{RequeueAfter: RequeueInterval, Children: []Child{a}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got Plan
			got.Add(tc.parts...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nAdd(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

func TestKeepExisting(t *testing.T) {
	observed := resource.MustStructJSON(`{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": {
			"name": "a", "namespace": "default", "uid": "1", "resourceVersion": "2", "generation": 3,
			"labels": {"app": "web", "crossplane.io/composite": "x"},
			"annotations": {"crossplane.io/composition-resource-name": "a", "someone.example.org/note": "theirs", "cloud.example.org/role": "ours", "cloud.example.org/": "odd"},
			"ownerReferences": [], "finalizers": ["x"], "managedFields": [
				{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {"f:annotations": {"f:someone.example.org/note": {}}}}},
				{"manager": "apiextensions.crossplane.io/composed/0123", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:annotations": {
					"f:crossplane.io/composition-resource-name": {}, "f:cloud.example.org/role": {}, "f:gone.example.org/x": {}
				}}}},
				{"manager": "apiextensions.crossplane.io/composed/4567", "operation": "Apply", "fieldsV1": {"f:metadata": "broken"}}
			]
		},
		"data": {"k": "v"}, "status": {"x": 1}
	}`)
	r := NewRun(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{"a": {Resource: observed}}}})
	if err := r.reply.keepExisting(); err != nil {
		t.Fatal(err)
	}
	want := map[string]*fnv1.Resource{"a": {
		Ready: fnv1.Ready_READY_FALSE,
		Resource: resource.MustStructJSON(`{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": {"name": "a", "namespace": "default", "labels": {"app": "web"}, "annotations": {"cloud.example.org/role": "ours"}},
			"data": {"k": "v"}
		}`),
	}}
	if diff := cmp.Diff(want, r.Response().GetDesired().GetResources(), protocmp.Transform()); diff != "" {
		t.Errorf("an observed child stays, with the fields that a function may apply: -want, +got:\n%s", diff)
	}
}

func TestEarlierFunctionsAreKept(t *testing.T) {
	r := NewRun(&fnv1.RunFunctionRequest{
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{"apiVersion": "example.org/v1", "kind": "App"}`)}},
		Desired: &fnv1.State{
			Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{"status": {"url": "theirs", "clusterID": "theirs"}}`)},
			Resources: map[string]*fnv1.Resource{"theirs": {Ready: fnv1.Ready_READY_TRUE}},
		},
	})
	if err := r.reply.setStatus(gatewayv1alpha1.TailscaleTailnetStatus{ClusterID: "ours"}); err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if err := r.reply.compose("ours", cm, true); err != nil {
		t.Fatal(err)
	}
	want := &fnv1.State{
		Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{
			"apiVersion": "example.org/v1", "kind": "App", "status": {"url": "theirs", "clusterID": "ours"}
		}`)},
		Resources: map[string]*fnv1.Resource{
			"theirs": {Ready: fnv1.Ready_READY_TRUE},
			"ours": {
				Ready:    fnv1.Ready_READY_TRUE,
				Resource: resource.MustStructJSON(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`),
			},
		},
	}
	if diff := cmp.Diff(want, r.Response().GetDesired(), protocmp.Transform()); diff != "" {
		t.Errorf("the desired state of earlier functions of a pipeline must stay: -want, +got:\n%s", diff)
	}
}

func TestOwnerOf(t *testing.T) {
	claimed := map[string]string{
		"crossplane.io/claim-name":         "web",
		"crossplane.io/claim-namespace":    "default",
		"meta.crossplane.io/something":     "x",
		"gateway.tailscale.com/services":   "web",
		"notcrossplane.io/must-not-be-cut": "x",
	}
	retained := map[string]string{"gateway.tailscale.com/services": "web", "notcrossplane.io/must-not-be-cut": "x"}
	cases := map[string]struct {
		reason string
		xr     metav1.ObjectMeta
		want   Owner
	}{
		"Namespaced": {
			reason: "A namespaced composite is the user's object",
			xr:     metav1.ObjectMeta{Name: "web", Namespace: "default"},
			want:   Owner{Name: "web", Namespace: "default"},
		},
		"Claimed": {
			reason: "The user's object is the claim",
			xr:     metav1.ObjectMeta{Name: "web-x7k2p", Labels: claimed},
			want:   Owner{Name: "web", Namespace: "default", Labels: retained},
		},
		"ClusterScoped": {
			reason: "A cluster-scoped composite without a claim has no namespace",
			xr:     metav1.ObjectMeta{Name: "example"},
			want:   Owner{Name: "example"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, OwnerOf(&tc.xr)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestList(t *testing.T) {
	cases := map[string]struct {
		reason string
		names  []string
		want   string
	}{
		"Three": {reason: "Three are listed, sorted", names: []string{"c", "a", "b"}, want: "a, b, c"},
		"Five":  {reason: "More are counted", names: []string{"e", "c", "a", "b", "d"}, want: "a, b, c and 2 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, List(tc.names...)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRequeueAfter(t *testing.T) {
	responsive := func(status string) []any { return []any{map[string]any{"type": "Responsive", "status": status}} }
	cases := map[string]struct {
		reason     string
		conditions []any
		children   int
		unready    bool
		want       time.Duration
	}{
		"New":           {reason: "A function that runs after every change needs no other calls"},
		"Closed":        {reason: "A closed circuit breaker drops no changes", conditions: responsive("True")},
		"ManyComeUp":    {reason: "A change that the circuit breaker may drop is detected soon", conditions: responsive("True"), unready: true, want: time.Minute},
		"Open":          {reason: "An open circuit breaker drops changes", conditions: responsive("False"), want: time.Second},
		"OpenMany":      {reason: "The interval grows with the number of children", conditions: responsive("False"), children: 100, want: 6 * time.Second},
		"OpenAndComeUp": {reason: "The sooner of two intervals takes precedence", conditions: responsive("False"), children: 2000, unready: true, want: time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			xr, err := structpb.NewStruct(map[string]any{"status": map[string]any{"conditions": tc.conditions}})
			if err != nil {
				t.Fatal(err)
			}
			observed := map[string]*fnv1.Resource{}
			for i := range tc.children {
				observed[strconv.Itoa(i)] = &fnv1.Resource{}
			}
			r := NewRun(&fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: observed}})
			if tc.unready {
				r.reply.requeueAfter(RequeueInterval)
			}
			if diff := cmp.Diff(tc.want, r.Response().GetMeta().GetTtl().AsDuration()); diff != "" {
				t.Errorf("%s\nTtl: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package firsttailnet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

const namespace = "crossplane-system"

// request returns the chart's ConfigMap for a tailnet.
func request(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: meta.FirstTailnetConfigMap},
		Data:       map[string]string{meta.FirstTailnetName: "example", meta.FirstTailnetSpec: "oauthSecretName: oauth\ntags:\n- tag:k8s\n"},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func recorded(tailnet string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Data[meta.FirstTailnetCreated] = tailnet }
}

func spec(s string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Data[meta.FirstTailnetSpec] = s }
}

// tailnet returns the TailscaleTailnet of the request.
func tailnet() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleTailnet",
		"metadata": map[string]any{"name": "example"},
		"spec":     map[string]any{"oauthSecretName": "oauth", "tags": []any{"tag:k8s"}},
	}}
}

func TestDecide(t *testing.T) {
	deleted := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	cases := map[string]struct {
		reason string
		facts  facts
		want   plan
		err    string
	}{
		"None": {
			reason: "Without a request there is nothing to do.",
		},
		"New": {
			reason: "A request should create the object and be recorded.",
			facts:  facts{request: request()},
			want:   plan{create: tailnet(), record: "example"},
		},
		"Exists": {
			reason: "An object that exists should stay as it is, and be recorded.",
			facts:  facts{request: request(), exists: true},
			want:   plan{record: "example"},
		},
		"ExistsInvalid": {
			reason: "The values do not count for an object that exists.",
			facts:  facts{request: request(spec("a: b: c")), exists: true},
			want:   plan{record: "example"},
		},
		"Recorded": {
			reason: "An object that the user has deleted should not come back.",
			facts:  facts{request: request(recorded("example"))},
		},
		"Renamed": {
			reason: "A name that is set later should have an effect.",
			facts:  facts{request: request(recorded("another"))},
			want:   plan{create: tailnet(), record: "example"},
		},
		"Deleted": {
			reason: "A request that is being deleted should have no effect.",
			facts:  facts{request: request(func(c *corev1.ConfigMap) { c.DeletionTimestamp = &deleted })},
		},
		"NoName": {
			reason: "A request that somebody has emptied should have no effect.",
			facts:  facts{request: request(func(c *corev1.ConfigMap) { c.Data = nil })},
		},
		"NoSpec": {
			reason: "The API server says which fields an empty spec lacks.",
			facts:  facts{request: request(spec(""))},
			want: plan{record: "example", create: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "gateway.tailscale.com/v1alpha1", "kind": "TailscaleTailnet",
				"metadata": map[string]any{"name": "example"}, "spec": map[string]any{},
			}}},
		},
		"NoMap": {
			reason: "A spec is an object.",
			facts:  facts{request: request(spec("[tags]"))},
			err:    "cannot parse spec: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := decide(tc.facts)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if diff := cmp.Diff(tc.err, message); diff != "" {
				t.Errorf("\n%s\ndecide(...): -want error, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("\n%s\ndecide(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

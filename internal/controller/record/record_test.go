// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestRecord(t *testing.T) {
	const a Annotation = "example.org/record"
	cases := map[string]struct {
		reason string
		value  string
		save   map[string][]string
		read   map[string][]string
		want   string
		err    string
	}{
		"New":     {reason: "A record is written.", save: map[string][]string{"a": {"1"}}, read: map[string][]string{}, want: `{"a":["1"]}`},
		"Changed": {reason: "A record replaces the last one.", value: `{"a":["1"]}`, save: map[string][]string{"b": {"2"}}, read: map[string][]string{"a": {"1"}}, want: `{"b":["2"]}`},
		"Empty":   {reason: "An empty record is no annotation.", value: `{"a":["1"]}`, read: map[string][]string{"a": {"1"}}},
		"Garbled": {reason: "An unreadable record is an error with advice.", value: "{", read: map[string][]string{}, err: "remove it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "subject", Annotations: map[string]string{}}}
			if tc.value != "" {
				o.Annotations[string(a)] = tc.value
			}
			kube := fake.NewClientBuilder().WithObjects(o.DeepCopy()).Build()
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			err := a.Read(o, &got)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("\n%s\nRead(...): want error %q, got %v", tc.reason, tc.err, err)
			}
			if diff := cmp.Diff(tc.read, got); diff != "" {
				t.Errorf("\n%s\nRead(...): -want, +got:\n%s", tc.reason, diff)
			}
			if err := Save(t.Context(), kube, o, a, tc.save); err != nil && tc.err == "" {
				t.Fatal(err)
			}
			if tc.err == "" && (o.Annotations[string(a)] != tc.want || a.Exists(o) != (tc.want != "")) {
				t.Errorf("\n%s\nSave(...): want %q, got %q", tc.reason, tc.want, o.Annotations[string(a)])
			}
		})
	}
}

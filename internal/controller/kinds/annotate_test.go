// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAnnotate(t *testing.T) {
	const key = "example.org/record"
	cases := map[string]struct {
		reason   string
		stale    bool
		value    string
		conflict bool
		want     map[string]string
	}{
		"New":      {reason: "A record is written.", value: "b", want: map[string]string{key: "b"}},
		"Same":     {reason: "An annotation with the wanted value is not written.", value: "a", want: map[string]string{key: "a"}},
		"None":     {reason: "An empty record removes the annotation.", want: map[string]string{}},
		"Stale":    {reason: "A caller with an outdated object does not undo the last record.", stale: true, value: "b", conflict: true, want: map[string]string{key: "since"}},
		"StaleOut": {reason: "Nor does it remove that record.", stale: true, conflict: true, want: map[string]string{key: "since"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "subject", Annotations: map[string]string{key: "a"}}}
			kube := fake.NewClientBuilder().WithObjects(o).Build()
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if tc.stale {
				newer := o.DeepCopy()
				newer.Annotations[key] = "since"
				if err := kube.Update(t.Context(), newer); err != nil {
					t.Fatal(err)
				}
			}
			if err := Annotate(t.Context(), kube, o, key, tc.value); kerrors.IsConflict(err) != tc.conflict || err != nil && !tc.conflict {
				t.Errorf("\n%s\nAnnotate(...): want a conflict: %t, got %v", tc.reason, tc.conflict, err)
			}
			got := &corev1.ConfigMap{}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
				t.Fatal(err)
			}
			if got.Annotations == nil {
				got.Annotations = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, got.Annotations); diff != "" {
				t.Errorf("\n%s\nAnnotations: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCorrectAnnotation(t *testing.T) {
	const key, other = "example.org/record", "example.org/other"
	cases := map[string]struct {
		reason  string
		stored  map[string]string
		uid     types.UID
		deleted bool
		value   string
		err     bool
		memory  string
		want    map[string]string
	}{
		"Unchanged": {reason: "The value is replaced.", stored: map[string]string{key: "a"}, value: "b", memory: "b", want: map[string]string{key: "b"}},
		"Edited":    {reason: "The edit of a user does not keep a wrong value, and is kept.", stored: map[string]string{key: "a", other: "user"}, value: "b", memory: "b", want: map[string]string{key: "b", other: "user"}},
		"Removed":   {reason: "The same holds for a value that is removed.", stored: map[string]string{key: "a", other: "user"}, want: map[string]string{other: "user"}},
		"Newer":     {reason: "A newer value is kept.", stored: map[string]string{key: "since"}, value: "b", err: true, memory: "a", want: map[string]string{key: "since"}},
		"Forgotten": {reason: "A value that the user has removed does not come back.", stored: map[string]string{other: "user"}, value: "b", err: true, memory: "a", want: map[string]string{other: "user"}},
		"Replaced":  {reason: "An object of the same name is another object.", stored: map[string]string{key: "a"}, uid: "other", value: "b", err: true, memory: "a", want: map[string]string{key: "a"}},
		"Deleted":   {reason: "An object that is gone needs no correction.", deleted: true, value: "b", memory: "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "subject", UID: "subject", Annotations: map[string]string{key: "a"}}}
			kube := fake.NewClientBuilder().WithObjects(o).Build()
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			version := o.GetResourceVersion()
			newer := o.DeepCopy()
			if err := kube.Delete(t.Context(), newer); err != nil {
				t.Fatal(err)
			}
			newer.Annotations, newer.ResourceVersion = tc.stored, ""
			if tc.uid != "" {
				newer.UID = tc.uid
			}
			if !tc.deleted {
				if err := kube.Create(t.Context(), newer); err != nil {
					t.Fatal(err)
				}
			}
			if err := CorrectAnnotation(t.Context(), kube, kube, o, key, tc.value); (err != nil) != tc.err {
				t.Errorf("\n%s\nCorrectAnnotation(...): want an error: %t, got %v", tc.reason, tc.err, err)
			}
			got := &corev1.ConfigMap{}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(o), got); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Annotations); diff != "" {
				t.Errorf("\n%s\nAnnotations: -want, +got:\n%s", tc.reason, diff)
			}
			if got := o.Annotations[key]; got != tc.memory {
				t.Errorf("\n%s\nin memory: want %q, got %q", tc.reason, tc.memory, got)
			}
			if name != "Unchanged" && o.GetResourceVersion() != version {
				t.Errorf("\n%s\nwant the old resource version, so that later writes conflict, got %s", tc.reason, o.GetResourceVersion())
			}
		})
	}
}

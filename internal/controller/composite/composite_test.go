// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

type recorder struct{ events []event.Event }

func (r *recorder) Event(_ runtime.Object, e event.Event)      { r.events = append(r.events, e) }
func (r *recorder) WithAnnotations(_ ...string) event.Recorder { return r }

func TestReconcile(t *testing.T) {
	created := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	deleted := metav1.NewTime(created)
	type want struct {
		result  reconcile.Result
		reasons []event.Reason
	}
	cases := map[string]struct {
		reason string
		age    time.Duration
		change func(o *v1alpha1.TailscaleEndpoints)
		absent bool
		want   want
	}{
		"Young":      {reason: "Crossplane needs a moment.", age: 30 * time.Second, want: want{result: reconcile.Result{RequeueAfter: 90 * time.Second}}},
		"Ignored":    {reason: "An object that Crossplane does not see gets an event.", age: grace, want: want{result: reconcile.Result{RequeueAfter: repeat}, reasons: []event.Reason{reasonNotReconciled}}},
		"Reconciled": {reason: "Crossplane's finalizer shows that it has seen the object.", age: time.Hour, change: func(o *v1alpha1.TailscaleEndpoints) { o.Finalizers = []string{"composite.apiextensions.crossplane.io"} }},
		"Claim":      {reason: "A claim has another finalizer.", age: time.Hour, change: func(o *v1alpha1.TailscaleEndpoints) { o.Finalizers = []string{"finalizer.apiextensions.crossplane.io"} }},
		"Paused": {reason: "Crossplane adds no finalizer to a paused object.", age: time.Hour, change: func(o *v1alpha1.TailscaleEndpoints) {
			o.Annotations = map[string]string{meta.AnnotationKeyReconciliationPaused: "true"}
		}},
		"Deleted": {reason: "An object that is being deleted waits for somebody else's finalizer.", age: time.Hour, change: func(o *v1alpha1.TailscaleEndpoints) {
			o.DeletionTimestamp, o.Finalizers = &deleted, []string{"example.org/keep"}
		}},
		"Foreign": {reason: "A finalizer of somebody else shows nothing.", age: grace, change: func(o *v1alpha1.TailscaleEndpoints) { o.Finalizers = []string{"example.org/keep"} }, want: want{result: reconcile.Result{RequeueAfter: repeat}, reasons: []event.Reason{reasonNotReconciled}}},
		"Absent":  {reason: "An object that is gone needs nothing.", absent: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			o := &v1alpha1.TailscaleEndpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "proxies", CreationTimestamp: metav1.NewTime(created)}}
			if tc.change != nil {
				tc.change(o)
			}
			b := fake.NewClientBuilder().WithScheme(s)
			if !tc.absent {
				b.WithObjects(o)
			}
			record := &recorder{}
			r := &reconciler{
				kube: b.Build(), kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.TailscaleEndpointsKind),
				clock: clocktesting.NewFakePassiveClock(created.Add(tc.age)), record: record,
			}
			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			if err != nil {
				t.Fatalf("\n%s\nReconcile(...): %v", tc.reason, err)
			}
			w := want{result: got}
			for _, e := range record.events {
				w.reasons = append(w.reasons, e.Reason)
			}
			if diff := cmp.Diff(tc.want, w, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nReconcile(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

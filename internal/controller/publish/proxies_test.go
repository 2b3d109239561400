// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func endpoints(name string, own bool) *gatewayv1alpha1.TailscaleEndpoints {
	o := &gatewayv1alpha1.TailscaleEndpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-endpoints"}}
	if own {
		o.Labels = map[string]string{meta.LabelManagedBy: meta.ManagedByPublish}
	}
	return o
}

// TestLinger checks that proxies which something uses again begin to linger from the start.
func TestLinger(t *testing.T) {
	kube := fakeClient(nil, endpoints("published", true))
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r := &proxiesReconciler{kube: kube, services: services{kube}, ours: managedOnly{kube}, clock: func() time.Time { return at }}
	key := types.NamespacedName{Namespace: "shop", Name: proxies}
	reconciled := func(want time.Duration) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("Reconcile(...): want %s, got %s, %v", want, result.RequeueAfter, err)
		}
	}
	reconciled(linger)
	at = at.Add(linger / 2)
	reconciled(linger / 2)
	if err := kube.Create(t.Context(), published(service())); err != nil {
		t.Fatal(err)
	}
	at = at.Add(linger)
	reconciled(0)
	if err := kube.Delete(t.Context(), published(service())); err != nil {
		t.Fatal(err)
	}
	reconciled(linger)
}

func TestReconcileProxies(t *testing.T) {
	resource := schema.GroupResource{Group: gatewayv1alpha1.Group, Resource: "tailscaleendpoints"}
	mine := service(annotated(meta.AnnotationEndpoints, "published"))
	home := service(annotated(meta.AnnotationTailnet, "home"))
	type want struct {
		tailnet string
		exists  bool
		own     bool
		reasons []event.Reason
		err     error
	}
	cases := map[string]struct {
		reason  string
		name    string
		objects []client.Object
		create  error // The API server's answer.
		want    want
	}{
		"Created":      {reason: "The first Service of a namespace gets proxies.", objects: []client.Object{service(), published(service())}, want: want{exists: true, own: true}},
		"Tailnet":      {reason: "They join the tailnet that the Service names.", name: "published-home", objects: []client.Object{home, published(home)}, want: want{exists: true, own: true, tailnet: "home"}},
		"Exists":       {reason: "Those of the user stay as they are.", objects: []client.Object{service(), published(service()), endpoints("published", false)}, want: want{exists: true}},
		"ExistsLate":   {reason: "So do those of which the cache does not know yet.", objects: []client.Object{service(), published(service())}, create: kerrors.NewAlreadyExists(resource, "published")},
		"Named":        {reason: "A Service that names them wants those of the user.", objects: []client.Object{mine, published(mine)}},
		"Unrequested":  {reason: "Without a TailscaleServices, a Service has no tailnet, or there is one of the user.", objects: []client.Object{service()}},
		"Kept":         {reason: "While a TailscaleServices selects them, proxies stay, also if it is about to go.", objects: []client.Object{published(service()), endpoints("published", true)}, want: want{exists: true, own: true}},
		"Removed":      {reason: "They go with the last one, for example since the provider stopped.", objects: []client.Object{service(), endpoints("published", true)}},
		"RemovedOther": {reason: "One that selects others does not keep them.", objects: []client.Object{home, published(home), endpoints("published", true)}},
		"UserStays":    {reason: "Those of the user are never deleted.", objects: []client.Object{endpoints("published", false)}, want: want{exists: true}},
		"Withdrawn":    {reason: "A Service that does not ask any more wants none.", objects: []client.Object{service(ofType(corev1.ServiceTypeClusterIP)), published(service())}},
		"Quota":        {reason: "A quota is reported, and tried again.", objects: []client.Object{service(), published(service())}, create: kerrors.NewForbidden(resource, "published", errors.New("exceeded quota")), want: want{reasons: []event.Reason{reasonRefused}, err: cmpopts.AnyError}},
		"Unavailable":  {reason: "Other errors are retried, without an event.", objects: []client.Object{service(), published(service())}, create: errBoom, want: want{err: errBoom}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fakeClient(tc.create, tc.objects...)
			events := &recorder{}
			r := &proxiesReconciler{kube: kube, services: services{kube}, ours: managedOnly{kube}, recorder: events}
			key := types.NamespacedName{Namespace: "shop", Name: proxies}
			if tc.name != "" {
				key.Name = tc.name
			}
			at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
			r.clock = func() time.Time { return at }
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if result.RequeueAfter == linger {
				if err := kube.Get(t.Context(), key, &gatewayv1alpha1.TailscaleEndpoints{}); err != nil {
					t.Errorf("\n%s\nReconcile(...): proxies should linger: %v", tc.reason, err)
				}
				at = at.Add(linger)
				_, err = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			}
			got := want{err: err}
			for _, e := range events.events {
				got.reasons = append(got.reasons, e.Reason)
			}
			o := &gatewayv1alpha1.TailscaleEndpoints{}
			if err := kube.Get(t.Context(), key, o); err == nil {
				got.exists, got.own, got.tailnet = true, owns(o), o.Spec.Tailnet
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nReconcile(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

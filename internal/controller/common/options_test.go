// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package common

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func secret(kind, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{meta.LabelSecretType: kind}}}
}

func TestForControllerRuntime(t *testing.T) {
	o := Options{Options: controller.Options{MaxConcurrentReconciles: 3}}.ForControllerRuntime()
	if o.MaxConcurrentReconciles != 3 || !ptr.Deref(o.RecoverPanic, false) {
		t.Errorf("ForControllerRuntime(): Crossplane's options are lost: %d at once, RecoverPanic %v", o.MaxConcurrentReconciles, o.RecoverPanic)
	}
	var got []time.Duration
	for range 10 {
		got = append(got, o.RateLimiter.When(reconcile.Request{}))
	}
	want := []time.Duration{
		200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond, 3200 * time.Millisecond,
		6400 * time.Millisecond, 12800 * time.Millisecond, 25600 * time.Millisecond, 51200 * time.Millisecond, time.Minute,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ForControllerRuntime(): how long an object waits: -want, +got:\n%s", diff)
	}
}

func TestMay(t *testing.T) {
	errBoom := errors.New("boom")
	cases := map[string]struct {
		reason  string
		allowed map[string]bool
		err     error
		want    bool
	}{
		"All":  {reason: "All verbs are allowed.", allowed: map[string]bool{"list": true, "watch": true}, want: true},
		"Some": {reason: "Some are not enough.", allowed: map[string]bool{"list": true}},
		"None": {reason: "None is."},
		"Err":  {reason: "What cannot be asked is an error.", err: errBoom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					r, ok := o.(*authv1.SelfSubjectAccessReview)
					if a := r.Spec.ResourceAttributes; !ok || a.Namespace != "web" || a.Group != "apps" || a.Resource != "statefulsets" {
						t.Errorf("Create(...): want a review of StatefulSets, got %+v", o)
					}
					r.Status.Allowed = tc.allowed[r.Spec.ResourceAttributes.Verb]
					return tc.err
				},
			})
			got, err := May(t.Context(), kube, "web", schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "list", "watch")
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" || got != tc.want {
				t.Errorf("\n%s\nMay(...): want %t, got %t; -want error, +got error:\n%s", tc.reason, tc.want, got, diff)
			}
		})
	}
}

func TestSecretsOfType(t *testing.T) {
	cases := map[string]struct {
		reason   string
		old, new *corev1.Secret
		want     bool
	}{
		"Changed":      {reason: "Any change counts.", old: secret("state", "1"), new: secret("state", "2"), want: true},
		"Resync":       {reason: "A resync is no change.", old: secret("state", "1"), new: secret("state", "1")},
		"OtherType":    {reason: "Secrets of other types are left out.", old: secret("other", "1"), new: secret("other", "2")},
		"LabelRemoved": {reason: "A Secret that loses its label has changed.", old: secret("state", "1"), new: secret("", "2"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SecretsOfType("state", "config").Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.new}); got != tc.want {
				t.Errorf("\n%s\nUpdate(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestJitter(t *testing.T) {
	hook := Jitter(func(_ resource.Managed, d time.Duration) time.Duration { return d })
	for range 100 {
		if got := hook(nil, time.Minute); got > time.Minute || got < 54*time.Second {
			t.Fatalf("Jitter(...): want at most a tenth less than a minute, got %s", got)
		}
	}
}

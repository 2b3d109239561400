// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// TestSecretEvents checks that what tailscaled writes into the state of a machine that is Ready is one
// reconciliation, and that nothing else waits.
func TestSecretEvents(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	at := metav1.Now()
	cases := map[string]struct {
		reason  string
		machine func(*v1alpha1.Machine)
		secret  func(*metav1.PartialObjectMetadata) // Changes the Secret.
		want    bool                                // Whether the machine waits.
	}{
		"Ready":   {reason: "The state of a Ready machine changes with each service.", machine: func(m *v1alpha1.Machine) { m.SetConditions(xpv2.Available()) }, want: true},
		"Joining": {reason: "A machine that joins the tailnet is seen at once."},
		"Deleting": {
			reason: "A deletion goes on at once.", machine: func(m *v1alpha1.Machine) {
				m.SetConditions(xpv2.Available())
				m.DeletionTimestamp, m.Finalizers = &at, []string{"f"}
			},
		},
		"SecretDeleted": {
			reason: "A Secret that is being deleted is seen at once.", machine: func(m *v1alpha1.Machine) { m.SetConditions(xpv2.Available()) },
			secret: func(s *metav1.PartialObjectMetadata) { s.DeletionTimestamp = &at },
		},
		"Label": {
			reason: "A Secret that loses its label is seen at once.", machine: func(m *v1alpha1.Machine) { m.SetConditions(xpv2.Available()) },
			secret: func(s *metav1.PartialObjectMetadata) { s.Labels = nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
			if tc.machine != nil {
				tc.machine(m)
			}
			old := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", Labels: map[string]string{meta.LabelMachine: "web-0"}}}
			updated := old.DeepCopy()
			updated.ResourceVersion = "2"
			if tc.secret != nil {
				tc.secret(updated)
			}
			c := clocktesting.NewFakeClock(at.Time)
			q := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: c})
			defer q.ShutDown()
			h := secretEvents(fake.NewClientBuilder().WithScheme(s).WithObjects(m).Build())
			for range 3 {
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: updated}, q)
			}
			if waits := q.Len() == 0; waits != tc.want {
				t.Fatalf("\n%s\nwant it to wait: %t, got %t", tc.reason, tc.want, waits)
			}
			c.Step(settledPause)
			if r, _ := q.Get(); r.Name != m.Name {
				t.Errorf("\n%s\nwant %s, got %s", tc.reason, m.Name, r.Name)
			}
			if n := q.Len(); n != 0 {
				t.Errorf("\n%s\nwant one reconciliation, got %d more", tc.reason, n)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A scripted client counts the calls of one object.
type scripted struct {
	NopDisconnect

	observation              managed.ExternalObservation
	observe, create, update  error
	observes, creates, edits int
	deletion                 error
}

func (s *scripted) Connect(context.Context, *v1alpha1.Webhook) (managed.TypedExternalClient[*v1alpha1.Webhook], error) {
	return s, nil
}

func (s *scripted) Observe(context.Context, *v1alpha1.Webhook) (managed.ExternalObservation, error) {
	s.observes++
	return s.observation, s.observe
}

func (s *scripted) Create(context.Context, *v1alpha1.Webhook) (managed.ExternalCreation, error) {
	s.creates++
	return managed.ExternalCreation{}, s.create
}

func (s *scripted) Update(context.Context, *v1alpha1.Webhook) (managed.ExternalUpdate, error) {
	s.edits++
	return managed.ExternalUpdate{}, s.update
}

func (s *scripted) Delete(context.Context, *v1alpha1.Webhook) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, s.deletion
}

func TestRefusals(t *testing.T) {
	plan := errors.Wrap(&tailscale.Error{Class: tailscale.ClassPlanRequired, Status: 403, Message: "feature not available on current billing plan"}, "cannot write log stream")
	quota := &tailscale.Error{Class: tailscale.ClassQuotaExceeded, Status: 403, Message: "quota"}
	other := errors.New("boom")
	type calls struct{ Observes, Creates, Edits int }
	cases := map[string]struct {
		reason  string
		tailnet scripted
		change  func(mg *v1alpha1.Webhook)
		want    calls // After three immediate rounds.
		later   calls // After one more round when the pause is over.
		ready   xpv2.ConditionReason
		err     error
	}{
		"Observe": {
			reason: "An observation that the plan refuses is not repeated at once.", tailnet: scripted{observe: plan},
			want: calls{Observes: 1}, later: calls{Observes: 2}, ready: meta.ReasonPlanRequired, err: plan,
		},
		"Create": {
			reason: "A create that the plan refuses is not repeated at once.", tailnet: scripted{create: plan},
			want: calls{Observes: 3, Creates: 1}, later: calls{Observes: 4, Creates: 2}, ready: meta.ReasonPlanRequired, err: plan,
		},
		"Quota": {
			reason: "A create beyond a limit is not repeated at once.", tailnet: scripted{create: quota},
			want: calls{Observes: 3, Creates: 1}, later: calls{Observes: 4, Creates: 2}, ready: meta.ReasonQuotaExceeded, err: quota,
		},
		"Update": {
			reason: "An object that exists is still observed.", tailnet: scripted{observation: managed.ExternalObservation{ResourceExists: true}, update: plan},
			want: calls{Observes: 3, Edits: 1}, later: calls{Observes: 4, Edits: 2}, err: plan,
		},
		"Other": {
			reason: "Calls with other errors are repeated.", tailnet: scripted{create: other},
			want: calls{Observes: 3, Creates: 3}, later: calls{Observes: 4, Creates: 4}, err: other,
		},
		"Edited": {
			reason: "A changed spec makes a different call.", tailnet: scripted{create: plan}, change: func(mg *v1alpha1.Webhook) { mg.Generation++ },
			want: calls{Observes: 3, Creates: 3}, later: calls{Observes: 4, Creates: 4}, ready: meta.ReasonPlanRequired, err: plan,
		},
		"Deleted": {
			reason: "A deletion is never held back.", tailnet: scripted{observe: plan},
			change: func(mg *v1alpha1.Webhook) { mg.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
			want:   calls{Observes: 3}, later: calls{Observes: 4}, ready: meta.ReasonPlanRequired, err: plan,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			c := &backingOff[*v1alpha1.Webhook]{TypedExternalConnector: &connected{&tc.tailnet}, refusals: newRefusals(clock)}
			mg := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{UID: "uid", Generation: 1}}
			round := func() error {
				e, err := c.Connect(t.Context(), mg)
				if err != nil {
					return err
				}
				o, err := e.Observe(t.Context(), mg)
				switch {
				case err != nil:
				case !o.ResourceExists:
					_, err = e.Create(t.Context(), mg)
				default:
					_, err = e.Update(t.Context(), mg)
				}
				return err
			}
			for range 3 {
				if diff := cmp.Diff(tc.err, round(), cmpopts.EquateErrors()); diff != "" {
					t.Errorf("\n%s\n-want error, +got error:\n%s", tc.reason, diff)
				}
				if tc.change != nil {
					tc.change(mg)
				}
			}
			if diff := cmp.Diff(tc.want, calls{tc.tailnet.observes, tc.tailnet.creates, tc.tailnet.edits}); diff != "" {
				t.Errorf("\n%s\nat once: -want, +got:\n%s", tc.reason, diff)
			}
			if got := mg.GetCondition(xpv2.TypeReady).Reason; name != "Edited" && got != tc.ready {
				t.Errorf("\n%s\nReady: want reason %q, got %q", tc.reason, tc.ready, got)
			}
			clock.SetTime(clock.Now().Add(refusedFor))
			if err := round(); !errors.Is(err, tc.err) {
				t.Errorf("\n%s\nlater: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.later, calls{tc.tailnet.observes, tc.tailnet.creates, tc.tailnet.edits}); diff != "" {
				t.Errorf("\n%s\nlater: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// connected is a connector that always returns the same client.
type connected struct{ *scripted }

// Disconnect closes nothing.
func (connected) Disconnect(context.Context) error { return nil }

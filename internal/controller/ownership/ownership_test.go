// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func object(name string, age time.Duration, ps ...xpv2.ManagementAction) *v1alpha1.Webhook {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	mg := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Time{Time: at.Add(-age)}}}
	mg.SetManagementPolicies(ps)
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "one"})
	return mg
}

func TestDescription(t *testing.T) {
	mg := object("web.example", 0)
	marker := Marker("cluster", mg)
	if Marker("other", mg) == marker {
		t.Error("two clusters have the same marker")
	}
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Text":    {reason: "The description contains the user's text.", text: "one team", want: marker + " one team"},
		"Name":    {reason: "Without a text, it contains the allowed characters of the object's name.", want: marker + " ns-web-example"},
		"Longest": {reason: "The longest text that the schema allows fits.", text: strings.Repeat("a", 30), want: marker + " " + strings.Repeat("a", 30)},
		"TooLong": {reason: "A description is cut to its maximum length.", text: strings.Repeat("a", 80), want: marker + " " + strings.Repeat("a", 30)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Description(marker, tc.text, mg)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nDescription(...): -want, +got:\n%s", tc.reason, diff)
			}
			if !Marked(got, marker) || Marked(got, Marker("other", mg)) {
				t.Errorf("\n%s\n%q is not distinguished from other descriptions", tc.reason, got)
			}
		})
	}
}

func TestAttempted(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		edit   func(mg *v1alpha1.Webhook)
		want   bool
	}{
		"Never":   {reason: "No create was attempted.", edit: func(*v1alpha1.Webhook) {}},
		"Pending": {reason: "The provider crashed during a create.", edit: func(mg *v1alpha1.Webhook) { xpmeta.SetExternalCreatePending(mg, at) }, want: true},
		"Failed": {reason: "The answer may have been lost.", edit: func(mg *v1alpha1.Webhook) {
			xpmeta.SetExternalCreatePending(mg, at)
			xpmeta.SetExternalCreateFailed(mg, at.Add(time.Second))
		}, want: true},
		"Recorded": {reason: "The ID is known, so a similar object is another one.", edit: func(mg *v1alpha1.Webhook) {
			xpmeta.SetExternalCreatePending(mg, at)
			xpmeta.SetExternalCreateSucceeded(mg, at.Add(time.Second))
		}},
		"Again": {reason: "The object was deleted by hand, and the second attempt is not recorded.", edit: func(mg *v1alpha1.Webhook) {
			xpmeta.SetExternalCreateSucceeded(mg, at)
			xpmeta.SetExternalCreatePending(mg, at.Add(time.Minute))
		}, want: true},
		"WasForeign": {reason: "The attempt found an existing object.", edit: func(mg *v1alpha1.Webhook) {
			xpmeta.SetExternalCreatePending(mg, at)
			SetNotOwned(mg, "id")
		}},
		"OtherWasForeign": {reason: "The attempt found another existing object, which is gone.", edit: func(mg *v1alpha1.Webhook) {
			xpmeta.SetExternalCreatePending(mg, at)
			SetNotOwned(mg, "other")
		}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := object("a", 0)
			tc.edit(mg)
			if got := Attempted(mg, "id"); got != tc.want {
				t.Errorf("\n%s\nAttempted(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRecordFailure(t *testing.T) {
	answer := func(c tailscale.Class, status int) error {
		return errors.Wrap(&tailscale.Error{Class: c, Status: status}, "cannot create")
	}
	cases := map[string]struct {
		reason     string
		err        error
		unresolved bool
		want       bool
	}{
		"Refused":           {reason: "A refused create made nothing.", err: answer(tailscale.ClassForbidden, 403)},
		"RefusedLater":      {reason: "The refused create found no result of the one before.", err: answer(tailscale.ClassForbidden, 403), unresolved: true},
		"Conflict":          {reason: "A first create conflicts with an object of another owner.", err: answer(tailscale.ClassConflict, 409)},
		"ConflictLater":     {reason: "The create may conflict with the result of the one before.", err: answer(tailscale.ClassConflict, 409), unresolved: true, want: true},
		"RateLimited":       {reason: "A create that waited for its turn was not sent.", err: answer(tailscale.ClassRateLimited, 0)},
		"Unavailable":       {reason: "The answer may have been lost.", err: answer(tailscale.ClassUnavailable, 500), want: true},
		"Timeout":           {reason: "A proxy that answers 408 may have sent the request.", err: answer(tailscale.ClassInvalid, 408), want: true},
		"OtherError":        {reason: "The error does not show whether the request was sent.", err: errors.New("boom"), want: true},
		"NotSent":           {reason: "The request was not sent.", err: NotSent(answer(tailscale.ClassUnavailable, 500))},
		"NotSentLater":      {reason: "The result of the create before is still unknown.", err: NotSent(answer(tailscale.ClassForbidden, 403)), unresolved: true, want: true},
		"NotSentAndWrapped": {reason: "A wrapped error is recognized.", err: errors.Wrap(NotSent(errors.New("no Secret")), "cannot create")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := object("a", 0)
			xpmeta.SetExternalCreatePending(mg, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			RecordFailure(mg, tc.err, tc.unresolved)
			if got := Attempted(mg, "id"); got != tc.want {
				t.Errorf("\n%s\nAttempted(...) after RecordFailure(...): want %t, got %t", tc.reason, tc.want, got)
			}
			xpmeta.SetExternalCreatePending(mg, time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC))
			if !Attempted(mg, "id") {
				t.Errorf("\n%s\nAttempted(...): the record of a create counts for the next one", tc.reason)
			}
		})
	}
}

func TestCheckConflict(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		self   *v1alpha1.Webhook
		other  *v1alpha1.Webhook
		lost   bool
	}{
		"Older":        {reason: "The older object keeps the part.", self: object("self", 0, "*"), other: object("other", time.Hour, "*"), lost: true},
		"Younger":      {reason: "A younger object takes no part.", self: object("self", time.Hour, "*"), other: object("other", 0, "*")},
		"Observer":     {reason: "An object that only observes contends for nothing.", self: object("self", 0, "*"), other: object("other", time.Hour, "Observe")},
		"SelfObserves": {reason: "An object that only observes has no conflict.", self: object("self", 0, "Observe"), other: object("other", time.Hour, "*")},
		"Alone":        {reason: "An object does not conflict with itself.", self: object("self", 0, "*"), other: object("self", 0, "*")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(s).WithObjects(tc.other).Build()
			err := CheckConflict(t.Context(), kube, &v1alpha1.WebhookList{}, v1alpha1.WebhookKind, tc.self, func(resource.Managed) string { return "the same" })
			if IsConflict(err) != tc.lost || (err != nil) != tc.lost {
				t.Fatalf("\n%s\nCheckConflict(...): want a conflict: %t, got %v", tc.reason, tc.lost, err)
			}
			if tc.lost && tc.self.GetCondition(xpv2.TypeReady).Reason != meta.ReasonConflict {
				t.Errorf("\n%s\nthe condition does not report the conflict", tc.reason)
			}
		})
	}
}

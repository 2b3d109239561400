// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func object(kind, name string, conditions ...Condition) Object {
	return Object{Reference: Reference{Kind: kind, Namespace: "shop", Name: name}, Conditions: conditions}
}

func failed(typ, reason string) Condition {
	return Condition{Type: typ, Status: "False", Reason: reason, Message: reason}
}

func TestFailure(t *testing.T) {
	cases := map[string]struct {
		reason     string
		conditions []Condition
		want       string
	}{
		"None":    {reason: "An object without conditions was not reconciled.", want: ReasonNotReconciled},
		"Order":   {reason: "The first condition of the chain is the cause.", conditions: []Condition{failed("Ready", "Creating"), failed("Advertised", "NoHost"), failed("VIPServiceReady", "ForeignService")}, want: "ForeignService"},
		"Synced":  {reason: "Without a reconcile, other conditions may be old.", conditions: []Condition{failed("Accepted", "Invalid"), failed("Synced", "ReconcileError")}, want: "ReconcileError"},
		"Unknown": {reason: "A condition that is False says more than one that is Unknown.", conditions: []Condition{{Type: "Accepted", Status: "Unknown", Reason: "Waiting"}, failed("Approved", "ApprovalPending")}, want: "ApprovalPending"},
		"Advice":  {reason: "Advice is no failure.", conditions: []Condition{failed("TailscaledTested", "VersionUntested"), failed("Ready", "Creating")}, want: "Creating"},
		"Other":   {reason: "A type that the chain does not have comes before Ready.", conditions: []Condition{failed("Ready", "Creating"), failed("Later", "New")}, want: "New"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, object("Kind", "o", tc.conditions...).Failure().Reason); diff != "" {
				t.Errorf("%s\nFailure(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReady(t *testing.T) {
	ready := Condition{Type: "Ready", Status: "True"}
	cases := map[string]struct {
		reason     string
		conditions []Condition
		want       bool
	}{
		"Ready":     {reason: "Ready alone is enough.", conditions: []Condition{ready}, want: true},
		"NotSynced": {reason: "A change that is not applied is a failure.", conditions: []Condition{ready, failed("Synced", "ReconcileError")}},
		"None":      {reason: "Without conditions nothing is known to work."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := object("Kind", "o", tc.conditions...).Ready(); got != tc.want {
				t.Errorf("%s\nReady(): got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestCycle checks that objects that name each other as owners end the search.
func TestCycle(t *testing.T) {
	a, b := object("TailscaleServices", "a", failed("Accepted", "A")), object("TailscaleEndpoints", "b", failed("Accepted", "B"))
	a.Owner, b.Owner = b.Reference, a.Reference
	a.Tailnets, b.Tailnets = []string{"b"}, []string{"a"}
	found := Find([]Object{a, b})
	objects := 0
	for _, c := range found {
		objects += len(c.Objects) + c.Waiting
		if c.NextStep("kubectl") == "" || c.Subject() == (Reference{}) {
			t.Errorf("Find(...): a cause without an object: %+v", c)
		}
	}
	if objects != 2 {
		t.Errorf("Find(...): %d objects, want 2: %+v", objects, found)
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"strconv"
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

// TestChain checks that a chain of owners that users wrote ends the search early, that all its objects are found, and
// that each cause has an object.
func TestChain(t *testing.T) {
	const length = 1000
	var objects []Object
	for n := range length {
		o := object("TailscaleEndpoints", strconv.Itoa(n), failed("Accepted", strconv.Itoa(n)))
		if n > 0 {
			o.Owner = objects[n-1].Reference
		}
		objects = append(objects, o)
	}
	count := 0
	for _, c := range Find(objects) {
		count += len(c.Objects) + c.Waiting
		if len(c.Objects) == 0 || c.Waiting > maxLevels {
			t.Errorf("Find(...): cause %q of %d objects, %d waiting", c.Reason, len(c.Objects), c.Waiting)
		}
	}
	if count != length {
		t.Errorf("Find(...): %d objects, want %d", count, length)
	}
}

// TestUsers checks that the tailnet is the first of all users that wait for it, wherever its name is in their order.
func TestUsers(t *testing.T) {
	tailnet := Object{Reference: Reference{Kind: tailnetKind, Name: "main"}, Conditions: []Condition{failed("Authenticated", "CredentialRejected")}}
	objects := []Object{tailnet}
	for n := range 3 {
		o := object("TailscaleEndpoints", strconv.Itoa(n), failed("Accepted", "Waiting"))
		o.Tailnets = []string{"main"}
		objects = append(objects, o)
	}
	found := Find(objects)
	want := []string{"TailscaleTailnet main", "TailscaleEndpoints shop/0", "TailscaleEndpoints shop/1", "TailscaleEndpoints shop/2"}
	var got []string
	for _, c := range found {
		for _, u := range c.Users {
			got = append(got, u.String())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Find(...): users: -want, +got:\n%s", diff)
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestRoutes changes the routes of an object in steps, on a device that is an exit node by an
// admin's approval.
func TestRoutes(t *testing.T) {
	cases := map[string]struct {
		reason string
		steps  []*[]string
		want   []string
	}{
		"Unmanaged": {
			reason: "Without the field nothing changes.",
			steps:  []*[]string{nil},
			want:   []string{"0.0.0.0/0", "10.0.0.0/16", "::/0"},
		},
		"Added": {
			reason: "Routes that others have approved stay beside those of the object.",
			steps:  []*[]string{{"10.1.0.0/16"}},
			want:   []string{"0.0.0.0/0", "10.0.0.0/16", "10.1.0.0/16", "::/0"},
		},
		"Removed": {
			reason: "Only routes that the object has approved are withdrawn.",
			steps:  []*[]string{{"10.1.0.0/16", "10.2.0.0/16"}, {"10.2.0.0/16"}, {}},
			want:   []string{"0.0.0.0/0", "10.0.0.0/16", "::/0"},
		},
		"Named": {
			reason: "A route that the object has named is the object's, also if it was approved before.",
			steps:  []*[]string{{"0.0.0.0/0", "::/0"}, {}},
			want:   []string{"10.0.0.0/16"},
		},
		"Left": {
			reason: "An object that stops to manage routes leaves all of them.",
			steps:  []*[]string{{"10.1.0.0/16"}, nil, {}},
			want:   []string{"0.0.0.0/0", "10.0.0.0/16", "10.1.0.0/16", "::/0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := newAPI(theirs(func(d *tailscale.Device) { d.EnabledRoutes = []string{"0.0.0.0/0", "10.0.0.0/16", "::/0"} }))
			mg := object()
			e := newExternal(t, api, object())
			for _, routes := range tc.steps {
				mg.Spec.ForProvider.Routes = routes
				reconcileRoutes(t, e, mg)
			}
			if diff := cmp.Diff(tc.want, api.devices["n1CNTRL"].EnabledRoutes); diff != "" {
				t.Errorf("\n%s\nroutes: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// reconcileRoutes updates the device until nothing changes any more: once for the tailnet, and once
// for the record.
func reconcileRoutes(t *testing.T, e *external, mg *v1alpha1.Device) {
	t.Helper()
	for range 3 {
		o, err := e.Observe(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		if o.ResourceUpToDate {
			return
		}
		if _, err := e.Update(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the device does not settle")
}

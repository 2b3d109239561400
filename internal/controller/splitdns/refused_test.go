// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package splitdns

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A refusingDNS refuses writes, after it has called edit.
type refusingDNS struct {
	*fakeDNS

	edit func()
}

func (r refusingDNS) PatchSplitDNS(context.Context, map[string][]string) error {
	r.edit()
	return &tailscale.Error{Class: tailscale.ClassForbidden, Status: 403, Message: "not allowed"}
}

// TestRefused refuses a write: a nameserver that another client adds afterwards does not belong to
// the object, and stays when the object is deleted.
func TestRefused(t *testing.T) {
	cases := map[string]struct {
		reason string
		paused bool
	}{
		"Alone":      {reason: "Nothing else changes the object."},
		"DuringEdit": {reason: "A user edits the object during the write.", paused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := &fakeDNS{split: map[string][]string{}}
			c := newCluster(t, api, object("a", []string{"a.example"}, "10.0.0.1"))
			edit := func() {
				if !tc.paused {
					return
				}
				mg := c.get(t, "a")
				xpmeta.AddAnnotations(mg, map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "true"})
				if err := c.kube.Update(t.Context(), mg); err != nil {
					t.Fatal(err)
				}
			}
			e := &external{api: areas(refusingDNS{fakeDNS: api, edit: edit}), kube: c.kube, live: c.kube}
			if _, err := e.Create(t.Context(), c.get(t, "a")); !tailscale.IsRefused(err) {
				t.Fatalf("\n%s\nCreate(...): want the refusal, got %v", tc.reason, err)
			}
			if mg := c.get(t, "a"); annotationRecord.Exists(mg) || xpmeta.IsPaused(mg) != tc.paused {
				t.Errorf("\n%s\nwant no record, and the user's annotation, got %v", tc.reason, mg.GetAnnotations())
			}

			api.split["a.example"] = []string{"10.0.0.1"}
			c.settle(t, "a")
			c.remove(t, "a")
			if diff := cmp.Diff(map[string][]string{"a.example": {"10.0.0.1"}}, api.split); diff != "" {
				t.Errorf("\n%s\nsplit DNS: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

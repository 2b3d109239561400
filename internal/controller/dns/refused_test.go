// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A refusingDNS refuses nameservers, after a user has edited the object.
type refusingDNS struct {
	dnsAPI

	edit func()
}

func (r refusingDNS) SetNameservers(context.Context, []string) error {
	r.edit()
	return &tailscale.Error{Class: tailscale.ClassForbidden, Status: 403, Message: "not allowed"}
}

// TestRefusedDuringEdit refuses a write while a user edits the object: what another client sets
// afterwards does not belong to the object.
func TestRefusedDuringEdit(t *testing.T) {
	api := &fakeAPI{}
	c := newCluster(t, api, object("a", 0, nameservers("1.1.1.1")))
	pause := func() {
		mg := c.get(t, "a")
		xpmeta.AddAnnotations(mg, map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "true"})
		if err := c.kube.Update(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	a := api.areas()
	a.dns = refusingDNS{dnsAPI: a.dns, edit: pause}
	e := &external{api: a, kube: c.kube, live: c.kube, events: event.NewNopRecorder()}
	if _, err := e.Create(t.Context(), c.get(t, "a")); !tailscale.IsRefused(err) {
		t.Fatalf("Create(...): want the refusal, got %v", err)
	}
	if mg := c.get(t, "a"); annotationRecord.Exists(mg) || !xpmeta.IsPaused(mg) {
		t.Errorf("want no record, and the user's annotation, got %v", mg.GetAnnotations())
	}

	api.Nameservers = []string{"8.8.8.8"}
	c.settle(t, "a")
	if diff := cmp.Diff([]string{"8.8.8.8"}, api.Nameservers); diff != "" {
		t.Errorf("the nameservers of another client have changed: -want, +got:\n%s", diff)
	}
	if ready := c.get(t, "a").GetCondition(xpv2.TypeReady); ready.Reason != meta.ReasonForeignObject {
		t.Errorf("Ready: want the reason %s, got %s", meta.ReasonForeignObject, ready.Reason)
	}
}

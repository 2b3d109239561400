// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// settle reconciles an object as the managed reconciler does, until nothing is left to do.
func settle(t *testing.T, f *fakeAPI, mg *v1alpha1.VIPService) error {
	t.Helper()
	for range 5 {
		e, _ := connect(t, f, nil, mg)
		// The object that retained the service is gone.
		e.(*external).lives = func(context.Context, string) (bool, error) { return false, nil }
		o, err := e.Observe(t.Context(), mg)
		switch {
		case err != nil:
			return err
		case mg.DeletionTimestamp != nil && o.ResourceExists:
			_, err = e.Delete(t.Context(), mg)
		case mg.DeletionTimestamp != nil, o.ResourceExists && o.ResourceUpToDate:
			return nil
		case o.ResourceExists:
			_, err = e.Update(t.Context(), mg)
		default:
			_, err = e.Create(t.Context(), mg)
			created(mg)
		}
		if err != nil {
			return err
		}
	}
	t.Fatal("the object does not settle")
	return nil
}

// TestRetain deletes an object whose service stays, and then has objects that want it.
func TestRetain(t *testing.T) {
	retain := func(v *v1alpha1.VIPService) { v.Spec.ForProvider.DeletionPolicy = v1alpha1.VIPServiceRetain }
	recreated := func(v *v1alpha1.VIPService) { v.UID = "another" }
	renamed := func(v *v1alpha1.VIPService) { v.Name, v.UID = "renamed", "another" }
	cases := map[string]struct {
		reason   string
		existing tailscale.Service
		next     *v1alpha1.VIPService
		want     map[string]string // Annotations of the service, nil if there is none.
		err      string
	}{
		"Stays": {
			reason:   "The service says whose it was, and that it stays.",
			existing: service(),
			want:     map[string]string{meta.AnnotationOwner: owner, meta.AnnotationDeletionPolicy: "Retain", "theirs": "kept"},
		},
		"Again": {
			reason:   "The same object gets it back, and its own policy counts from then on.",
			existing: service(),
			next:     object(recreated),
			want:     map[string]string{meta.AnnotationOwner: owner, "theirs": "kept"},
		},
		"Another": {
			reason:   "Another object does not get it by chance.",
			existing: service(),
			next:     object(renamed),
			want:     map[string]string{meta.AnnotationOwner: owner, meta.AnnotationDeletionPolicy: "Retain", "theirs": "kept"},
			err:      `service "svc:web" belongs to cluster/default/web; choose another name, or delete that object first`,
		},
		"Adopted": {
			reason:   "Another object takes it over if its user says so.",
			existing: service(),
			next:     object(renamed, adopting),
			want:     map[string]string{meta.AnnotationOwner: "cluster/default/renamed", "theirs": "kept"},
		},
		"CoOwned": {
			reason:   "Tailscale's operator keeps a service that it also owns; nothing of ours is left on it.",
			existing: service(refs(`{"ownerRefs":[{"operatorID":"n1"},{"operatorID":"cluster"}]}`)),
			want:     map[string]string{meta.AnnotationOwnerReferences: `{"ownerRefs":[{"operatorID":"n1"}]}`, "theirs": "kept"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeAPI{services: map[string]tailscale.Service{"svc:web": tc.existing}}
			if err := settle(t, f, object(retain, created)); err != nil {
				t.Fatal(err)
			}
			if err := settle(t, f, object(retain, created, deleted)); err != nil {
				t.Fatal(err)
			}
			if tc.next != nil {
				got := ""
				if err := settle(t, f, tc.next); err != nil {
					got = err.Error()
				}
				if diff := cmp.Diff(tc.err, got); diff != "" {
					t.Errorf("\n%s\nthe next object: -want error, +got error:\n%s", tc.reason, diff)
				}
			}
			got := f.services["svc:web"]
			if diff := cmp.Diff(tc.want, got.Annotations); diff != "" {
				t.Errorf("\n%s\nannotations: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]string{"fd7a::1", "100.64.0.1"}, got.Addrs); diff != "" {
				t.Errorf("\n%s\naddresses: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLostCluster has another cluster take over the services of a cluster that is lost for good, as
// docs/backup.md describes.
func TestLostCluster(t *testing.T) {
	n := newTailnet(t)
	a, b := n.provider("a"), n.provider("b")
	exclusive := func(v *v1alpha1.VIPService) { v.Spec.ForProvider.Sharing = v1alpha1.SharingExclusive }
	api := func(v *v1alpha1.VIPService) { v.Name, v.UID, v.Spec.ForProvider.Name = "api", v.UID+"-api", "svc:api" }
	ma, mb := a.share(exclusive), b.share(exclusive)
	ca, cb := a.share(api), b.share(api)
	a.settle(ma)
	a.settle(ca)
	n.later(2 * time.Minute)
	b.settle(cb)
	web, shared := n.find("svc:web").Addrs, n.find("svc:api").Addrs

	// Cluster a is gone, and has deleted nothing.
	n.later(time.Hour)
	if _, err := b.reconcile(mb); err == nil || mb.GetCondition(xpv2.TypeReady).Reason != meta.ReasonForeignService {
		t.Fatalf("want a service of another cluster to be refused without a word of the user, got %v", err)
	}
	mb.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
	b.settle(mb)
	if s := n.find("svc:web"); s.Annotations[meta.AnnotationOwner] != "b/default/web" {
		t.Errorf("the owner of the service: want b's object, got %v", s.Annotations)
	}
	n.later(8 * 24 * time.Hour)
	b.settle(cb)
	if s := n.find(registry.RecordName("svc:api", "a")); s != nil {
		t.Errorf("the record of the lost cluster stays: %v", s.Annotations)
	}
	if s := n.find("svc:api"); s.Annotations[meta.AnnotationOwnerOperator] != "b/default/api" {
		t.Errorf("the owner of the shared service: want b's object, got %v", s.Annotations)
	}
	if diff := cmp.Diff([][]string{web, shared}, [][]string{n.find("svc:web").Addrs, n.find("svc:api").Addrs}); diff != "" {
		t.Errorf("addresses: -want, +got:\n%s", diff)
	}

	// If it comes back after all, it takes nothing back, and deletes nothing.
	if _, err := a.reconcile(ma); err == nil || ma.GetCondition(xpv2.TypeReady).Reason != meta.ReasonForeignService {
		t.Errorf("want the lost cluster to be refused, got %v", err)
	}
	a.leave(ma)
	if s := n.find("svc:web"); s == nil || s.Annotations[meta.AnnotationOwner] != "b/default/web" {
		t.Errorf("want the service to stay b's, got %+v", s)
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestSelected(t *testing.T) {
	machine := func(name, endpoints string) v1alpha1.Machine {
		return v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{meta.LabelEndpoints: endpoints}}}
	}
	attachment := func(endpoints, service string, d v1alpha1.Direction) v1alpha1.ServiceAttachment {
		return v1alpha1.ServiceAttachment{Spec: v1alpha1.ServiceAttachmentSpec{Endpoints: endpoints, ServiceName: v1alpha1.ServiceName(service), Direction: d}}
	}
	got := selected(
		[]v1alpha1.Machine{machine("ours", "edge"), machine("other", "mallory"), machine("egress", "out"), machine("unlabelled", "")},
		[]v1alpha1.ServiceAttachment{
			attachment("edge", "svc:payments", v1alpha1.DirectionIngress),
			attachment("mallory", "svc:mallory", v1alpha1.DirectionIngress),
			attachment("out", "svc:payments", v1alpha1.DirectionEgress),
		}, "svc:payments")
	var names []string
	for _, m := range got {
		names = append(names, m.GetName())
	}
	if diff := cmp.Diff([]string{"ours"}, names); diff != "" {
		t.Errorf("selected(...): only machines that are to host the service count: -want, +got:\n%s", diff)
	}
}

// TestAdopt has an object take over services of others.
func TestAdopt(t *testing.T) {
	const twin = "cluster/other/web"
	theirs := func(owner string) func(*tailscale.Service) {
		return func(s *tailscale.Service) { s.Annotations = map[string]string{meta.AnnotationOwner: owner} }
	}
	cases := map[string]struct {
		reason  string
		service tailscale.Service
		lives   bool
		err     error
		refused bool
		want    error
	}{
		"Nobody":       {reason: "A service without an owner is taken over.", service: service(foreignService)},
		"OtherCluster": {reason: "A service of another cluster is taken over, because this cluster cannot check its owner.", service: service(theirs("elsewhere/other/web")), lives: true},
		"Gone":         {reason: "A service that a deleted object of this cluster left is taken over.", service: service(theirs(twin))},
		"Living":       {reason: "An existing object of this cluster keeps its service, whichever namespace reports it.", service: service(theirs(twin)), lives: true, refused: true},
		"Err":          {reason: "Nothing is taken over while the owner's existence is unknown.", service: service(theirs(twin)), err: errBoom, want: errBoom},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := object(adopting)
			f := &fakeAPI{services: map[string]tailscale.Service{"svc:web": tc.service}}
			e, _ := connect(t, f, nil, mg)
			e.(*external).lives = func(context.Context, string) (bool, error) { return tc.lives, tc.err }
			_, err := e.Observe(t.Context(), mg)
			if tc.refused {
				if r, ok := registry.Refusal(err); !ok || r.Reason != meta.ReasonNameTaken {
					t.Errorf("\n%s\nObserve(...): want NameTaken, got %v", tc.reason, err)
				}
				if _, err := e.Update(t.Context(), mg); err == nil || f.writes > 0 {
					t.Errorf("\n%s\nUpdate(...): want no write, got %d, %v", tc.reason, f.writes, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want error, +got error:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdoptShared is TestAdopt for a cluster's own service next to a shared one.
func TestAdoptShared(t *testing.T) {
	mg := shareObject(adopting)
	f := &fakeAPI{services: map[string]tailscale.Service{
		"svc:web": {Name: "svc:web", Addrs: []string{"100.64.0.1", "fd7a::1"}, Annotations: map[string]string{meta.AnnotationOwner: "cluster/other/web"}},
	}}
	e, _ := connect(t, f, nil, mg)
	s, ok := e.(*sharing)
	if !ok {
		t.Fatalf("Connect(...): got a %T", e)
	}
	s.lives = func(context.Context, string) (bool, error) { return true, nil }
	_, err := e.Observe(t.Context(), mg)
	var r *registry.RefusalError
	if !errors.As(err, &r) || r.Reason != meta.ReasonNameTaken {
		t.Errorf("Observe(...): want NameTaken, got %v", err)
	}
}

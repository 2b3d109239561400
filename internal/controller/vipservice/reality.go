// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// mayCreate returns an error if a service that does not exist cannot be created because the tailnet
// refused it before. Only the failure of the last attempt is on record, so mayCreate requests the
// service once more.
func (e *external) mayCreate(ctx context.Context, mg *v1alpha1.VIPService) error {
	if xpmeta.GetExternalCreateFailed(mg).IsZero() || observeOnly(mg) {
		return nil
	}
	_, err := registry.Get(ctx, e.api, string(mg.Spec.ForProvider.Name))
	if _, refused := registry.Refusal(err); refused {
		mg.SetConditions(foreign(err))
		return err
	}
	return nil
}

// lostAnnotations reports whether a service belongs to the object although its annotations no
// longer say so: it has both addresses that the object has seen on its service, and no owner's
// mark. An edit in the admin console or by Terraform may drop annotations, and whether the API
// keeps all of them is not documented.
func lostAnnotations(mg *v1alpha1.VIPService, s *tailscale.Service) bool {
	seen := mg.Status.AtProvider.Addresses
	return registry.Unmarked(s) && mg.Status.AtProvider.Name == s.Name && len(seen) > 1 && slices.Equal(seen, sortAddresses(s.Addrs))
}

// observeAnnotations sets the condition that shows whether the tailnet keeps the service's
// annotations. It reports missing annotations from the second observation on: a single loss may be
// a user's edit.
func (e *external) observeAnnotations(mg *v1alpha1.VIPService, s *tailscale.Service, want tailscale.Service) {
	c := xpv2.Condition{Type: meta.TypeAnnotationsKept, LastTransitionTime: metav1.Now()}
	switch kept := s.HasAnnotations(want.Annotations); {
	case !kept && e.hosts.countLost(mg.GetUID(), lostAnnotations(mg, s)):
		c.Status, c.Reason = corev1.ConditionFalse, meta.ReasonAnnotationsLost
		c.Message = "The tailnet does not keep the annotations of the service, which say whose it is: something else edits the service, or its annotations are over a limit of Tailscale. The service works; do not share it, and find what edits it"
	case kept && mg.GetCondition(meta.TypeAnnotationsKept).Status == corev1.ConditionFalse:
		c.Status, c.Reason = corev1.ConditionTrue, meta.ReasonAnnotationsKept
	default:
		return
	}
	mg.SetConditions(c)
}

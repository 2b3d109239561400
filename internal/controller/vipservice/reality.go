// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry/apply"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// mayCreate returns an error if a service that does not exist cannot be created because the tailnet
// refused it before. Only the failure of the last attempt is on record, so mayCreate requests the
// service once more.
func (e *external) mayCreate(ctx context.Context, mg *v1alpha1.VIPService) error {
	if xpmeta.GetExternalCreateFailed(mg).IsZero() || observeOnly(mg) {
		return nil
	}
	_, err := apply.Get(ctx, e.api.services, string(mg.Spec.ForProvider.Name))
	if _, refused := registry.Refusal(err); refused {
		mg.SetConditions(foreign(err))
		return err
	}
	return nil
}

// lostAnnotations reports whether a service belongs to the object although its annotations no
// longer say so: it has the name and both addresses of the service that the object is known to have
// made, and no owner's mark. An edit in the admin console or by Terraform may drop annotations, and
// whether the API keeps all of them is not documented. The provider's memory knows
// the service: users with access to the namespace may write the object's status.
func (c connection) lostAnnotations(ctx context.Context, s *tailscale.Service) (bool, error) {
	if !registry.Unmarked(s) || len(s.Addrs) < 2 {
		return false, nil
	}
	product, err := c.memory.Recall(ctx)
	return err == nil && product == identity(s), err
}

// remember records that a service is the object's.
func (c connection) remember(ctx context.Context, s *tailscale.Service) error {
	if len(s.Addrs) < 2 {
		return nil
	}
	return c.memory.Remember(ctx, identity(s))
}

// madeAddresses returns the addresses of the object's service of this name, as far as they are remembered.
func (c connection) madeAddresses(ctx context.Context, name string) ([]string, error) {
	product, err := c.memory.Recall(ctx)
	if err != nil {
		return nil, err
	}
	if addresses, ok := strings.CutPrefix(product, name+","); ok {
		return strings.Split(addresses, ","), nil
	}
	return nil, nil
}

// identity returns the name and the addresses of a service.
func identity(s *tailscale.Service) string {
	return strings.Join(append([]string{s.Name}, sortAddresses(s.Addrs)...), ",")
}

// observeAnnotations sets the condition that shows whether the tailnet keeps the service's
// annotations. It reports missing annotations from the second observation on: a single loss may be
// a user's edit.
func (e *external) observeAnnotations(ctx context.Context, mg *v1alpha1.VIPService, s *tailscale.Service, want tailscale.Service) error {
	lost, err := e.lostAnnotations(ctx, s)
	if err != nil {
		return err
	}
	c := xpv2.Condition{Type: meta.TypeAnnotationsKept, LastTransitionTime: metav1.Now()}
	switch intact := s.HasAnnotations(want.Annotations); {
	case !intact && e.hosts.countLost(mg.GetUID(), lost):
		c.Status, c.Reason = corev1.ConditionFalse, meta.ReasonAnnotationsLost
		c.Message = "The tailnet does not keep the annotations of the service, which say whose it is: something else edits the service, or its annotations are over a limit of Tailscale. The service works; do not share it, and find what edits it"
	case intact && mg.GetCondition(meta.TypeAnnotationsKept).Status == corev1.ConditionFalse:
		c.Status, c.Reason = corev1.ConditionTrue, meta.ReasonAnnotationsKept
	default:
		return nil
	}
	mg.SetConditions(c)
	return nil
}

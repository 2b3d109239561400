// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

// observeDrain sets the condition Drained of a service that this cluster hands to others, and records
// which of its machines Update must withdraw or have serve again. Machines are withdrawn only while a
// host of another cluster, which does not drain, is known to serve all ports. If the provider stops,
// they serve again after withdrawFor.
func (e *sharing) observeDrain(ctx context.Context, mg *v1alpha1.VIPService, v registry.View, members []registry.Member) error {
	if observeOnly(mg) {
		return nil
	}
	if !mg.Spec.ForProvider.Drain {
		if mg.GetCondition(meta.TypeDrained).Status != corev1.ConditionUnknown {
			mg.SetConditions(drained(corev1.ConditionUnknown, meta.ReasonNotRequested, "The service does not drain"))
		}
		return nil
	}
	hosts := mg.Status.AtProvider.Hosts
	announced := registry.DrainAnnounced(v, members, e.clusterID)
	elsewhere := peerHealthOf(registry.Serving(members), e.clusterID).whole(hosts)
	advertised := 0
	for _, r := range e.reported {
		if r.Advertised {
			advertised++
		}
	}
	switch {
	case !elsewhere:
		mg.SetConditions(drained(corev1.ConditionFalse, meta.ReasonNoOtherCluster, fmt.Sprintf("This cluster serves %s until a host of another cluster, which does not drain, is known to serve all ports", mg.Status.AtProvider.Name)))
	case !announced:
		mg.SetConditions(drained(corev1.ConditionFalse, meta.ReasonDrainAnnounced, "Other clusters learn that this one drains, which takes about a minute"))
	case advertised > 0:
		mg.SetConditions(drained(corev1.ConditionFalse, meta.ReasonHostsWithdrawing, fmt.Sprintf("%d machines of this cluster still host %s", advertised, mg.Status.AtProvider.Name)))
	default:
		mg.SetConditions(drained(corev1.ConditionTrue, meta.ReasonHostsWithdrawn, fmt.Sprintf("Other clusters serve %s", mg.Status.AtProvider.Name)))
	}
	machines, err := e.pods.machines(ctx, mg.GetNamespace())
	if err != nil {
		return errors.Wrap(err, "cannot list machines")
	}
	at := e.hosts.clock.Now()
	for _, id := range slices.Sorted(maps.Keys(e.reported)) {
		i := slices.IndexFunc(machines, func(m v1alpha1.Machine) bool { return meta.NodeIDOf(&m) == id })
		if i < 0 {
			continue
		}
		end, err := e.pods.withdrawnUntil(ctx, &machines[i], mg.Status.AtProvider.Name)
		if err != nil {
			return errors.Wrapf(err, "cannot learn what machine %q has withdrawn", machines[i].GetName())
		}
		switch {
		case elsewhere && announced && end.Before(at.Add(renewBefore)):
			e.withdraw = append(e.withdraw, withdrawal{machine: machines[i], drain: true, end: at.Add(withdrawFor), renewal: at.Before(end)})
		case !elsewhere && at.Before(end):
			e.withdraw = append(e.withdraw, withdrawal{machine: machines[i], drain: true})
		}
	}
	return nil
}

// drained returns the condition Drained.
func drained(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return xpv2.Condition{Type: meta.TypeDrained, Status: status, LastTransitionTime: metav1.Now(), Reason: reason, Message: message}
}

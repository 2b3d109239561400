// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
)

// Control sends clients to the primary host of a service, or, with regional routing, to one of
// several. It can leave a service without one although its hosts are approved and online
// (tailscale/tailscale#19666): the service is then dead, and only the network maps of nodes show
// it. Agents report what they see there. This file combines their reports with the records of
// other clusters. Everything else is unknown, and changes nothing.

// A routing says whether a service has a primary host.
type routing int

const (
	// routingUndecided means that control has accepted no machine yet.
	routingUndecided routing = iota
	// routingNotReported means that a machine does not report it.
	routingNotReported
	// routingUnhosted means that no machine offers the service.
	routingUnhosted
	// routingPending means that machines are accepted, and it is not certain that there is no
	// primary host.
	routingPending
	// routingRouted means that a host is primary.
	routingRouted
	// routingUnrouted means that no machine has seen a primary host for a minute.
	routingUnrouted
)

// routing returns what this cluster's machines report. offline reports whether the API shows a
// machine as disconnected: its report is then outdated.
func (c reports) routing(offline func(id string) bool) routing {
	var offers, accepted, dead int
	silent := false
	for id, r := range c {
		switch {
		case offline(id):
		case r.Routed == v1alpha1.RoutingTrue:
			return routingRouted
		case !r.Advertised:
		case r.Routed == "":
			silent = true
		default:
			offers++
			// Control makes no machine primary that it has not accepted.
			if r.Accepted {
				accepted++
			}
			if r.Accepted && r.Routed == v1alpha1.RoutingFalse {
				dead++
			}
		}
	}
	switch {
	case silent:
		return routingNotReported
	case offers == 0:
		return routingUnhosted
	case accepted == 0:
		return routingUndecided
	case dead < accepted:
		return routingPending
	}
	return routingUnrouted
}

// primarySeen reports whether a machine was primary for a service.
func (c reports) primarySeen() bool {
	for _, r := range c {
		if r.PrimarySeen {
			return true
		}
	}
	return false
}

// offlineHosts returns a function that reports whether a host is disconnected, or fenced because other
// machines have lost it.
func offlineHosts(hosts []v1alpha1.ServiceHost) func(id string) bool {
	off := make(map[string]bool, len(hosts))
	for _, h := range hosts {
		off[h.NodeID] = !h.Online || h.Fenced
	}
	return func(id string) bool { return off[id] }
}

// hidden reports whether a host that no agent of ours reports about may be primary. The policy file
// decides which hosts a machine sees, so other clusters say in their records that they see no
// primary host.
func hidden(hosts []v1alpha1.ServiceHost, others []registry.Member) bool {
	dead := map[string]bool{}
	for _, m := range others {
		if !m.Alive || m.Health != nil && m.Health.Ready == 0 {
			continue
		}
		if m.Health == nil && len(m.Nodes) == 0 {
			continue
		}
		if m.Health == nil || !m.Health.Unrouted {
			return true
		}
		for _, id := range m.Nodes {
			dead[id] = true
		}
	}
	return slices.ContainsFunc(hosts, func(h v1alpha1.ServiceHost) bool {
		return h.Online && !h.Fenced && !h.Local && h.Approval != notApproved && !dead[h.NodeID]
	})
}

// notApproved is the API's name of a host that may not serve.
const notApproved = "not-approved"

// observeRouting sets the condition Routed, and records the remedy that Update must begin. others
// are the other clusters that share the service.
func (e *external) observeRouting(ctx context.Context, mg *v1alpha1.VIPService, others []registry.Member) error {
	o := &mg.Status.AtProvider
	o.PrimaryRoutesSeen = o.PrimaryRoutesSeen || e.reported.primarySeen()
	r, seen := e.reported.routing(offlineHosts(o.Hosts)), false
	if r == routingUnrouted {
		var err error
		if seen, err = e.primarySeen(ctx, mg); err != nil {
			return err
		}
	}
	previous := mg.GetCondition(meta.TypeRouted)
	if r == routingUnhosted && previous.Status == corev1.ConditionFalse && remedying(o.RoutingRemedy, e.hosts.clock.Now()) {
		r = routingPending
	}
	c := routedCondition(previous, e.fresh, seen, hidden(o.Hosts, others), r, o.Name)
	if c == nil {
		return nil
	}
	c.LastTransitionTime = metav1.NewTime(e.hosts.clock.Now())
	mg.SetConditions(*c)
	switch {
	case c.Status == corev1.ConditionFalse && previous.Status != corev1.ConditionFalse:
		e.record.Event(mg, event.Warning(reasonNoPrimaryHost, errors.Errorf("no host of %s is primary, so clients have no route to it", o.Name)))
	case c.Status == corev1.ConditionTrue && previous.Status == corev1.ConditionFalse:
		e.record.Event(mg, event.Normal(reasonHostPrimary, "A host of "+o.Name+" is primary again"))
	}
	if c.Status == corev1.ConditionFalse && !observeOnly(mg) {
		return e.observeRemedy(ctx, mg, others)
	}
	return nil
}

// remedying reports whether the last remedy may have withdrawn a service for a moment: then it is not without hosts,
// and a host that is primary after it ends the same problem.
func remedying(last *v1alpha1.RoutingRemedy, at time.Time) bool {
	return last != nil && at.Before(last.Time.Add(afterAdvertise))
}

// primarySeen reports whether control reports to nodes of the tailnet that they are primary. A report of
// an agent counts in its namespace only, because pods can write it. The VIPServices that record it
// cannot be written by pods.
func (e *external) primarySeen(ctx context.Context, mg *v1alpha1.VIPService) (bool, error) {
	if mg.Status.AtProvider.PrimaryRoutesSeen {
		return true, nil
	}
	seen, err := e.pods.primarySeen(ctx, mg)
	return seen, errors.Wrap(err, "cannot list VIPServices")
}

// routedCondition returns the condition Routed, or nil to keep it as it is. fresh means that no host
// served the service before, seen that control reports to nodes of the tailnet that they are primary, and
// hidden that a host may be primary that no machine of ours sees. The caller sets the time.
func routedCondition(previous xpv2.Condition, fresh, seen, hidden bool, r routing, service string) *xpv2.Condition {
	c := xpv2.Condition{Type: meta.TypeRouted, Status: corev1.ConditionUnknown}
	waits := previous.Reason == meta.ReasonWaitingForPrimary
	switch {
	case r == routingRouted:
		c.Status, c.Reason = corev1.ConditionTrue, meta.ReasonHostPrimary
	case r == routingUnrouted && seen && !hidden:
		c.Status, c.Reason = corev1.ConditionFalse, meta.ReasonNoPrimaryHost
		c.Message = fmt.Sprintf("Tailscale has accepted hosts of %s and has made none of them primary, so clients have no route to it. The provider lets one machine advertise it again, and then restarts one; events show when. If that does not help, restart the pods of the TailscaleEndpoints one after the other", service)
	case r == routingUnhosted && previous.Reason != "":
		c.Reason, c.Message = meta.ReasonNoHost, fmt.Sprintf("No machine offers %s", service)
	case r == routingPending && (previous.Reason == "" && fresh || previous.Reason == meta.ReasonNoHost || waits):
		c.Reason, c.Message = meta.ReasonWaitingForPrimary, fmt.Sprintf("Waiting for Tailscale to make a host of %s primary", service)
	case r == routingUnrouted && (previous.Reason == "" || waits || !seen || previous.Status == corev1.ConditionFalse), r == routingNotReported && waits:
		c.Reason = meta.ReasonPrimaryNotReported
		c.Message = fmt.Sprintf("No machine of this cluster sees a primary host of %s. That does not show that there is none: another host may be primary, or this tailnet does not report it. If clients cannot reach the service, restart the pods of the TailscaleEndpoints one after the other", service)
	default:
		return nil
	}
	return &c
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// hooksInterval is the minimum time between two updates of a report with hooks by one replica.
const hooksInterval = 30 * time.Second

// hookCounts holds the counts that this replica has reported, by the UID of the report. A
// report that was created again starts without counts.
type hookCounts map[types.UID]tailnetv1alpha1.ReportedHooks

// CountHooks adds the hooks that this replica answered to the reports, until ctx ends. Every
// replica does so, because Envoy Gateway calls any replica, and not only the one that writes.
func (c *Controller) CountHooks(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.ready:
	}
	reported := hookCounts{}
	wait.UntilWithContext(ctx, func(ctx context.Context) { c.countHooks(ctx, reported) }, hooksInterval)
	return nil
}

// countHooks adds the hooks since the last update to all reports.
func (c *Controller) countHooks(ctx context.Context, reported hookCounts) {
	if !c.has(routes.KindTailscaleGateway) {
		return
	}
	existing := map[types.UID]bool{}
	for _, r := range c.reports(ctx) {
		existing[r.GetUID()] = true
		if err := c.addHooks(ctx, r, reported); err != nil && ctx.Err() == nil {
			c.log.Info("Cannot report hooks; retrying", "name", client.ObjectKeyFromObject(r), "error", err)
		}
	}
	maps.DeleteFunc(reported, func(id types.UID, _ tailnetv1alpha1.ReportedHooks) bool { return !existing[id] })
}

// addHooks adds new hooks to a report. A replica adds to the version that it has read. If the
// response to a successful write is lost, the replica adds the same hooks again: counting twice
// is better than not counting.
func (c *Controller) addHooks(ctx context.Context, r *tailnetv1alpha1.GatewayReport, reported hookCounts) error {
	o := &gatewayv1alpha1.TailscaleGateway{}
	found, err := c.get(ctx, types.NamespacedName{Namespace: r.GetNamespace(), Name: r.Spec.Gateway}, o)
	if err != nil || !found || !c.manages(o) {
		return errors.Wrap(err, "cannot get TailscaleGateway")
	}
	counts := c.options.Hooks(o.GatewayName().String())
	delta := newHooks(reported[r.GetUID()], counts)
	if delta == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current := &tailnetv1alpha1.GatewayReport{}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(r), current); err != nil {
			return err
		}
		if current.GetUID() != r.GetUID() {
			// A new report is updated in the next round.
			return nil
		}
		previous := current.DeepCopy()
		current.Spec.Extension.Hooks = addedHooks(current.Spec.Extension.Hooks, *delta)
		return c.client.Patch(ctx, current, client.MergeFromWithOptions(previous, client.MergeFromWithOptimisticLock{}), client.FieldOwner(ir.ManagedBy))
	})
	if err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot patch GatewayReport")
	}
	reported[r.GetUID()] = *counts
	return nil
}

// newHooks returns the hooks that were not reported yet, and nil if there are none. A replica
// whose counts for a Gateway were reset counts from zero.
func newHooks(reported tailnetv1alpha1.ReportedHooks, counts *tailnetv1alpha1.ReportedHooks) *tailnetv1alpha1.ReportedHooks {
	if counts == nil || counts.Total == reported.Total {
		return nil
	}
	if counts.Total < reported.Total {
		return counts
	}
	return &tailnetv1alpha1.ReportedHooks{Total: counts.Total - reported.Total, Failed: counts.Failed - reported.Failed, LastCall: counts.LastCall}
}

// addedHooks returns the sum of the hooks of a report and further hooks.
func addedHooks(current *tailnetv1alpha1.ReportedHooks, delta tailnetv1alpha1.ReportedHooks) *tailnetv1alpha1.ReportedHooks {
	if current == nil {
		return &delta
	}
	delta.Total += current.Total
	delta.Failed += current.Failed
	if current.LastCall != nil && delta.LastCall.Before(current.LastCall) {
		delta.LastCall = current.LastCall
	}
	return &delta
}

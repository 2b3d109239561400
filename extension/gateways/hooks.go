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
	"github.com/tailscale-gateway/tailscale-gateway/extension/reconcile"
)

// hooksInterval is how often a replica may change a report because of hooks.
const hooksInterval = 30 * time.Second

// A tally is what this replica has told of hooks, by report: one that is made again has
// heard of none.
type tally map[types.UID]tailnetv1alpha1.ReportedHooks

// CountHooks adds to reports what Envoy Gateway asked of this replica, until ctx ends. Every
// replica does, for Envoy Gateway asks any, and not the one that writes the rest.
func (c *Controller) CountHooks(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.ready:
	}
	told := tally{}
	wait.UntilWithContext(ctx, func(ctx context.Context) { c.countHooks(ctx, told) }, hooksInterval)
	return nil
}

// countHooks that were asked since they were told.
func (c *Controller) countHooks(ctx context.Context, told tally) {
	if !c.has(kindTailscaleGateway) {
		return
	}
	there := map[types.UID]bool{}
	for _, r := range c.reports(ctx) {
		there[r.GetUID()] = true
		if err := c.addHooks(ctx, r, told); err != nil && ctx.Err() == nil {
			c.log.Info("Cannot tell of hooks, and will try again", "name", client.ObjectKeyFromObject(r), "error", err)
		}
	}
	maps.DeleteFunc(told, func(id types.UID, _ tailnetv1alpha1.ReportedHooks) bool { return !there[id] })
}

// addHooks to a report. Replicas add to what they have read, and to nothing newer. Who does
// not hear that a write was taken adds the same again: it is better told twice than never.
func (c *Controller) addHooks(ctx context.Context, r *tailnetv1alpha1.GatewayReport, told tally) error {
	o := &gatewayv1alpha1.TailscaleGateway{}
	found, err := c.get(ctx, types.NamespacedName{Namespace: r.GetNamespace(), Name: r.Spec.Gateway}, o)
	if err != nil || !found || !c.mine(o) {
		return errors.Wrap(err, "cannot get TailscaleGateway")
	}
	now := c.options.Hooks(gatewayOf(o).String())
	more := newHooks(told[r.GetUID()], now)
	if more == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		is := &tailnetv1alpha1.GatewayReport{}
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(r), is); err != nil {
			return err
		}
		if is.GetUID() != r.GetUID() {
			// What is new is not told of yet, and has its turn.
			return nil
		}
		was := is.DeepCopy()
		is.Spec.Extension.Hooks = addedHooks(is.Spec.Extension.Hooks, *more)
		return c.client.Patch(ctx, is, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}), client.FieldOwner(reconcile.ManagedBy))
	})
	if err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "cannot patch GatewayReport")
	}
	told[r.GetUID()] = *now
	return nil
}

// newHooks are those that were not told. Nil if there are none. A replica that does not
// remember a Gateway counts again.
func newHooks(told tailnetv1alpha1.ReportedHooks, now *tailnetv1alpha1.ReportedHooks) *tailnetv1alpha1.ReportedHooks {
	if now == nil || now.Total == told.Total {
		return nil
	}
	if now.Total < told.Total {
		return now
	}
	return &tailnetv1alpha1.ReportedHooks{Total: now.Total - told.Total, Failed: now.Failed - told.Failed, Last: now.Last}
}

// addedHooks are those of a report and more.
func addedHooks(is *tailnetv1alpha1.ReportedHooks, more tailnetv1alpha1.ReportedHooks) *tailnetv1alpha1.ReportedHooks {
	if is == nil {
		return &more
	}
	more.Total += is.Total
	more.Failed += is.Failed
	if is.Last != nil && more.Last.Before(is.Last) {
		more.Last = is.Last
	}
	return &more
}

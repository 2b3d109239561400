// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/report"
)

// Write reconciles all TailscaleGateways until ctx ends. Only one replica may write at a time.
func (c *Controller) Write(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.ready:
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry))
	defer context.AfterFunc(ctx, q.ShutDown)()
	c.setQueue(q)
	defer c.metrics.reset()
	defer c.setQueue(nil)

	// Event handlers enqueue later changes. The owners of existing objects are enqueued as
	// well, so that the objects of deleted TailscaleGateways are deleted.
	c.enqueue(c.all(ctx)...)
	c.enqueue(c.owners(ctx)...)
	for {
		n, down := q.Get()
		if down || ctx.Err() != nil {
			return
		}
		switch err := c.reconcile(ctx, n); {
		case err == nil:
			q.Forget(n)
		case kerrors.IsConflict(err):
			// Another client wrote first. The watch will deliver its version.
			q.AddRateLimited(n)
		default:
			c.log.Info("Cannot reconcile a TailscaleGateway; retrying", "name", n, "error", err)
			q.AddRateLimited(n)
		}
		q.Done(n)
	}
}

// Reports returns the existing reports, which are read-only.
func (c *Controller) Reports() []*tailnetv1alpha1.GatewayReport {
	return c.reports(context.Background())
}

// reconcile reconciles the objects of one TailscaleGateway.
func (c *Controller) reconcile(ctx context.Context, n types.NamespacedName) error {
	v, err := c.read(ctx, n)
	if err != nil {
		return err
	}
	if v.foreign {
		c.metrics.set(n, nil)
		return nil
	}
	if v.Object == nil {
		return errors.Join(c.writeRoutes(ctx, v, nil), c.removeReport(ctx, v))
	}
	r := plan(v.input)
	failed := c.writeRoutes(ctx, v, r.routes)
	c.metrics.set(n, report.Generated(r.routes))
	return errors.Join(failed, c.writeReport(ctx, v, r.report()))
}

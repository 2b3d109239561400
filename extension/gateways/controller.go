// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/report"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// debounce is how long a change waits for further changes, so that fifty routes at once
	// cause one or two reports.
	debounce = 300 * time.Millisecond

	// firstRetry is the delay after the first failure, and lastRetry the maximum.
	firstRetry = time.Second
	lastRetry  = time.Minute

	// timeout limits a request.
	timeout = 10 * time.Second
)

// Options of a Controller.
type Options struct {
	// Version of this build.
	Version string

	// Permitted reports whether a route may reference a backend.
	Permitted func(r ir.RouteKey, b ir.BackendRef) bool

	// Gateway is the Gateway of a dedicated extension. Nil means all Gateways without a dedicated
	// extension.
	Gateway *types.NamespacedName

	// Dedicated is called with the Gateways that have a dedicated extension, whenever the set
	// changes. It may be nil.
	Dedicated func(gateways map[types.NamespacedName]bool)

	// Hooks returns the hooks that this replica has answered for a Gateway, NAMESPACE/NAME,
	// since it started. It returns nil if there are none.
	Hooks func(gateway string) *tailnetv1alpha1.ReportedHooks

	// Log may be nil.
	Log logging.Logger
}

// A Controller reconciles the reports and generated routes of TailscaleGateways. Create one
// with NewController.
type Controller struct {
	reader
	writer

	metrics *metrics

	// ready is closed once all existing kinds are watched.
	ready     chan struct{}
	markReady func()

	// writing is held by Write: a new term may begin before the last one has ended.
	writing sync.Mutex

	// mu guards the fields below.
	mu sync.Mutex

	// synced reports whether the cache had all policies of Envoy Gateway at the last check.
	synced bool

	// dedicated holds the last argument of Options.Dedicated.
	dedicated map[types.NamespacedName]bool

	// queue holds the TailscaleGateways to reconcile. It is nil while another replica writes.
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// NewController returns a Controller that reads from a cache and writes with a client.
func NewController(from cache.Cache, to client.Client, o Options) *Controller {
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	c := &Controller{
		reader:  reader{cache: from, client: to, options: o, log: o.Log, watched: map[string]bool{}, policies: map[string]cache.Informer{}},
		writer:  writer{client: to},
		metrics: newMetrics(),
		ready:   make(chan struct{}),
	}
	c.markReady = sync.OnceFunc(func() { close(c.ready) })
	return c
}

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
	r.fillReport()
	c.metrics.set(n, report.Generated(r.routes))
	return errors.Join(failed, c.writeReport(ctx, v, r.report))
}

// enqueue adds TailscaleGateways to the queue after the debounce interval.
func (c *Controller) enqueue(keys ...types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		return
	}
	for _, n := range keys {
		c.queue.AddAfter(n, debounce)
	}
}

// setQueue sets the queue, or nil.
func (c *Controller) setQueue(q workqueue.TypedRateLimitingInterface[types.NamespacedName]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = q
}

// writes reports whether this replica writes.
func (c *Controller) writes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue != nil
}

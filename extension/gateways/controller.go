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
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// debounce is how long a change waits for others: fifty routes at once are one
	// report or two.
	debounce = 300 * time.Millisecond

	// firstRetry after a failure, and the longest that waits grow to.
	firstRetry = time.Second
	lastRetry  = time.Minute

	// timeout of a request.
	timeout = 10 * time.Second
)

// Options of a Controller.
type Options struct {
	// Version of this build.
	Version string

	// Permitted reports whether a route may name a backend.
	Permitted func(r ir.RouteKey, b ir.BackendRef) bool

	// Only is the Gateway that this extension is for. Nil is for all that have none of
	// their own.
	Only *types.NamespacedName

	// Dedicated is told which Gateways have an extension of their own, whenever others
	// have. It may be nil.
	Dedicated func(gateways map[types.NamespacedName]bool)

	// Hooks that this replica was asked for a Gateway, NAMESPACE/NAME, since it started. It
	// returns nil for none.
	Hooks func(gateway string) *tailnetv1alpha1.ReportedHooks

	// Log may be nil.
	Log logging.Logger
}

// A Controller keeps what TailscaleGateways need. Make one by NewController.
type Controller struct {
	cache   cache.Cache
	client  client.Client
	options Options
	log     logging.Logger
	metrics *metrics

	// ready is closed once all kinds that are there are watched.
	ready  chan struct{}
	looked func()

	// writing is held by who does: the next time may begin before the last has ended.
	writing sync.Mutex

	// mu guards what follows.
	mu      sync.Mutex
	watched map[string]bool

	// securityPolicies that the cache keeps, and whether it was seen to have them all.
	// Nil while there is no such kind.
	securityPolicies cache.Informer
	synced           bool

	// dedicated are the Gateways that were told of.
	dedicated map[types.NamespacedName]bool

	// queue of what is to be looked at. Nil while another replica writes.
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// NewController returns one that reads from a cache, and writes by a client.
func NewController(from cache.Cache, to client.Client, o Options) *Controller {
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	c := &Controller{
		cache:   from,
		client:  to,
		options: o,
		log:     o.Log,
		metrics: newMetrics(),
		ready:   make(chan struct{}),
		watched: map[string]bool{},
	}
	c.looked = sync.OnceFunc(func() { close(c.ready) })
	return c
}

// Write what is to be there, until ctx ends. No other replica may meanwhile.
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

	// What comes from here on is told of. What was written for those that are gone
	// meanwhile goes.
	c.enqueue(c.all(ctx)...)
	c.enqueue(c.written(ctx)...)
	for {
		n, down := q.Get()
		if down || ctx.Err() != nil {
			return
		}
		switch err := c.reconcile(ctx, n); {
		case err == nil:
			q.Forget(n)
		case kerrors.IsConflict(err):
			// Another was first. What it wrote is on its way here.
			q.AddRateLimited(n)
		default:
			c.log.Info("Cannot keep what a TailscaleGateway needs, and will try again", "name", n, "error", err)
			q.AddRateLimited(n)
		}
		q.Done(n)
	}
}

// Reports that there are. They are not to be changed. A nil Controller has none.
func (c *Controller) Reports() []*tailnetv1alpha1.GatewayReport {
	if c == nil {
		return nil
	}
	return c.reports(context.Background())
}

func (c *Controller) reports(ctx context.Context) []*tailnetv1alpha1.GatewayReport {
	l := &tailnetv1alpha1.GatewayReportList{}
	if !c.has(kindReport) || c.list(ctx, l) != nil {
		// The cache fails only when it ends.
		return nil
	}
	out := make([]*tailnetv1alpha1.GatewayReport, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// reconcile one TailscaleGateway.
func (c *Controller) reconcile(ctx context.Context, n types.NamespacedName) error {
	v, err := c.read(ctx, n)
	if err != nil {
		return err
	}
	if v.others {
		c.metrics.set(n, nil)
		return nil
	}
	if v.object == nil {
		return errors.Join(c.writeRoutes(ctx, v, nil), c.removeReport(ctx, v))
	}
	r := plan(v.input)
	failed := c.writeRoutes(ctx, v, r.routes)
	r.tell()
	c.metrics.set(n, r.generated())
	return errors.Join(failed, c.writeReport(ctx, v, r.report))
}

// enqueue TailscaleGateways to be looked at soon.
func (c *Controller) enqueue(of ...types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		return
	}
	for _, n := range of {
		c.queue.AddAfter(n, debounce)
	}
}

func (c *Controller) setQueue(q workqueue.TypedRateLimitingInterface[types.NamespacedName]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = q
}

// writes reports whether this replica does.
func (c *Controller) writes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue != nil
}

// has reports whether a kind is watched, so that looking it up is no request.
func (c *Controller) has(kind string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watched[kind]
}

func (c *Controller) knows(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched[kind] = true
}

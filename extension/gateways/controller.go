// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

const (
	// debounce is how long a change waits for further changes, so that fifty routes at once
	// cause one or two reports.
	debounce = 300 * time.Millisecond

	// firstRetry is the delay after the first failure, and lastRetry the maximum.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

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

// NewController returns a Controller that reads from a cache and writes with a client. The client has no
// cache.
func NewController(from cache.Cache, to client.Client, o Options) *Controller {
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	c := &Controller{
		reader:  reader{cache: from, server: to, options: o, log: o.Log, watched: map[string]bool{}, policies: map[string]cache.Informer{}},
		writer:  writer{client: to},
		metrics: newMetrics(),
		ready:   make(chan struct{}),
	}
	c.markReady = sync.OnceFunc(func() { close(c.ready) })
	return c
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

// Metrics returns a collector of the Controller's metrics.
func (c *Controller) Metrics() prometheus.Collector { return c.metrics }

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// detaching holds, for objects that are being deleted, the time since when they wait, by the clock
// of Tailscale's API, and the time of their next reconcile. If the times are lost, the wait starts
// again.
type detaching struct {
	mu     sync.Mutex
	starts map[types.UID]time.Time
	next   map[types.NamespacedName]time.Duration
}

func newDetaching() *detaching {
	return &detaching{starts: map[types.UID]time.Time{}, next: map[types.NamespacedName]time.Duration{}}
}

func (d *detaching) get(uid types.UID) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.starts[uid]
}

func (d *detaching) set(uid types.UID, start time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.starts[uid] = start
	if start.IsZero() {
		delete(d.starts, uid)
	}
}

// pace sets when the object is reconciled next.
func (d *detaching) pace(object types.NamespacedName, delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next[object] = delay
}

// take returns the delay that pace has set, once.
func (d *detaching) take(object types.NamespacedName) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delay, ok := d.next[object]
	delete(d.next, object)
	return delay, ok
}

// paced reconciles a waiting object when its wait is over. The managed reconciler would back off,
// and finish up to twice as late.
type paced struct {
	reconcile.Reconciler

	detaching *detaching
}

// Reconcile implements reconcile.Reconciler.
func (p *paced) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r, err := p.Reconciler.Reconcile(ctx, req)
	delay, waits := p.detaching.take(req.NamespacedName)
	//nolint:staticcheck // The managed reconciler asks for another try in this way.
	if err != nil || !waits || !r.Requeue {
		return r, err
	}
	return reconcile.Result{RequeueAfter: delay}, nil
}

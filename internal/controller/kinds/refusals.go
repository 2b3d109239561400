// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// refusedFor is how long a call is not repeated after the tailnet's plan or a limit of the tailnet
// refused it: a person must act first.
const refusedFor = 10 * time.Minute

// refusals holds, by object, the calls that the tailnet's plan or a limit of the tailnet refused.
type refusals struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	entries map[types.UID]refusal
}

// A refusal is the refusal of one call.
type refusal struct {
	call       call
	generation int64 // Of the refused object: a changed spec makes a different call.
	at         time.Time
	err        error
}

type call string

const (
	callObserve call = "Observe"
	callCreate  call = "Create"
	callUpdate  call = "Update"
)

func newRefusals(c clock.PassiveClock) *refusals {
	return &refusals{clock: c, entries: map[types.UID]refusal{}}
}

// get returns why an object's call is not repeated yet, or nil.
func (r *refusals) get(mg resource.Managed, c call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.entries[mg.GetUID()]
	if !ok || f.call != c || f.generation != mg.GetGeneration() || r.clock.Since(f.at) >= refusedFor {
		return nil
	}
	return f.err
}

// record keeps a call's error if it is a refusal, and otherwise removes an earlier refusal of the
// call. It returns the error.
func (r *refusals) record(mg resource.Managed, c call, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, refused := refusedReason(err); refused {
		r.entries[mg.GetUID()] = refusal{call: c, generation: mg.GetGeneration(), at: r.clock.Now(), err: err}
		return err
	}
	if r.entries[mg.GetUID()].call == c {
		delete(r.entries, mg.GetUID())
	}
	return err
}

func (r *refusals) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, uid)
}

// refusedReason returns the condition's reason for an error, and whether the tailnet's plan or a
// limit of the tailnet is the cause.
func refusedReason(err error) (xpv2.ConditionReason, bool) {
	switch tailscale.ClassOf(err) {
	case tailscale.ClassPlanRequired:
		return meta.ReasonPlanRequired, true
	case tailscale.ClassQuotaExceeded:
		return meta.ReasonQuotaExceeded, true
	}
	return "", false
}

// backingOff wraps a connector. Its clients repeat refused calls rarely, and report the reason.
type backingOff[T resource.ModernManaged] struct {
	managed.TypedExternalConnector[T]

	refusals *refusals
}

// Connect returns a client that repeats refused calls rarely.
func (c *backingOff[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	e, err := c.TypedExternalConnector.Connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	return &backingOffClient[T]{TypedExternalClient: e, refusals: c.refusals}, nil
}

type backingOffClient[T resource.ModernManaged] struct {
	managed.TypedExternalClient[T]

	refusals *refusals
}

// Observe observes the object, unless an observation was refused recently. It keeps the reconciler
// from repeating a refused Create, which would write two annotations each time. It never holds back
// a deletion.
func (c *backingOffClient[T]) Observe(ctx context.Context, mg T) (managed.ExternalObservation, error) {
	if xpmeta.WasDeleted(mg) {
		o, err := c.TypedExternalClient.Observe(ctx, mg)
		if err == nil && !o.ResourceExists {
			c.refusals.forget(mg.GetUID())
		}
		return o, err
	}
	if err := c.refusals.get(mg, callObserve); err != nil {
		return managed.ExternalObservation{}, setRefused(mg, err)
	}
	o, err := c.TypedExternalClient.Observe(ctx, mg)
	if err != nil {
		return o, setRefused(mg, c.refusals.record(mg, callObserve, err))
	}
	if err := c.refusals.get(mg, callCreate); err != nil && !o.ResourceExists {
		return managed.ExternalObservation{}, setRefused(mg, err)
	}
	return o, nil
}

// Create creates the object and records a refusal.
func (c *backingOffClient[T]) Create(ctx context.Context, mg T) (managed.ExternalCreation, error) {
	o, err := c.TypedExternalClient.Create(ctx, mg)
	return o, c.refusals.record(mg, callCreate, err)
}

// Update updates the object, unless an update was refused recently.
func (c *backingOffClient[T]) Update(ctx context.Context, mg T) (managed.ExternalUpdate, error) {
	if err := c.refusals.get(mg, callUpdate); err != nil {
		return managed.ExternalUpdate{}, err
	}
	o, err := c.TypedExternalClient.Update(ctx, mg)
	return o, c.refusals.record(mg, callUpdate, err)
}

// setRefused sets the reason of the refusal in the object's Ready condition, and returns the error.
func setRefused(mg resource.Conditioned, err error) error {
	if reason, ok := refusedReason(err); ok {
		mg.SetConditions(xpv2.Condition{Type: xpv2.TypeReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now(), Reason: reason, Message: err.Error()})
	}
	return err
}

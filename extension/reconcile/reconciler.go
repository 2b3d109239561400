// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// writeTimeout limits the duration of one write.
const writeTimeout = 10 * time.Second

// An Observed is the last observed version of an object.
type Observed struct {
	// State of the object, which the Reconciler compares with the desired one. Never empty.
	State string

	// Object is read-only.
	Object client.Object
}

// state returns the state of the object, and an empty string if the object does not exist.
func (s *Observed) state() string {
	if s == nil {
		return ""
	}
	return s.State
}

// A Writer writes objects of one kind. A conflict error means that another client changed the
// object first; the Reconciler does not log it.
type Writer interface {
	// Write brings the object to the desired state and returns it. If observed is nil, Write
	// creates the object; otherwise it replaces the observed version. A Write of an object that
	// is up to date must still change the object.
	Write(ctx context.Context, name types.NamespacedName, desired string, observed *Observed) (*Observed, error)

	// Delete deletes the object if it still has the observed version.
	Delete(ctx context.Context, name types.NamespacedName, observed *Observed) error
}

// A Reconciler brings objects of one kind to their desired states. Create one with
// NewReconciler.
type Reconciler struct {
	kind   string
	writer Writer
	log    logging.Logger
	wake   chan struct{}

	// excluded is the function that Exclude sets. It may be nil.
	excluded func(n types.NamespacedName, state string) bool

	// mu guards the entries. It is not held during writes.
	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
}

// NewReconciler returns a Reconciler, which writes nothing until Run. The kind appears in logs.
func NewReconciler(kind string, w Writer, log logging.Logger) *Reconciler {
	return &Reconciler{
		kind:    kind,
		writer:  w,
		log:     log.WithValues("kind", kind),
		wake:    make(chan struct{}, 1),
		entries: map[types.NamespacedName]*entry{},
	}
}

// Exclude sets a function that reports, by name and state, whether another extension manages an
// object that is not desired here. The Reconciler does not delete such objects. Call Exclude
// before Run.
func (r *Reconciler) Exclude(excluded func(n types.NamespacedName, state string) bool) {
	r.excluded = excluded
}

// SetDesired sets the desired states of all objects by name. Objects without a state are
// deleted.
func (r *Reconciler) SetDesired(states map[types.NamespacedName]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, s := range states {
		r.entry(n).setDesired(s)
	}
	for n, e := range r.entries {
		if _, ok := states[n]; !ok {
			e.setDesired("")
		}
	}
	r.notify()
}

// Observe records the current version of an object. Nil means that the object does not exist.
func (r *Reconciler) Observe(n types.NamespacedName, s *Observed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s == nil && r.entries[n] == nil {
		return
	}
	r.entry(n).observe(s, time.Now())
	r.notify()
}

// Resync requests a write of an object although it is up to date. A write that is due anyway
// satisfies the request.
func (r *Reconciler) Resync(n types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[n]; e != nil && e.desired != "" {
		e.resyncs++
		r.notify()
	}
}

// Desired reports whether a state of an object is desired, or was.
func (r *Reconciler) Desired(n types.NamespacedName, state string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[n]
	return e != nil && (e.desired == state || slices.Contains(e.past, state))
}

// UpToDate returns the names of the objects that are in their desired state, sorted.
func (r *Reconciler) UpToDate() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []types.NamespacedName
	for n, e := range r.entries {
		if e.desired != "" && e.state() == e.desired {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, compareNames)
	return out
}

// RewriteAll writes each object that is up to date once, until ctx ends. Run must not run at
// the same time.
func (r *Reconciler) RewriteAll(ctx context.Context) error {
	var errs []error
	for _, n := range r.UpToDate() {
		r.mu.Lock()
		e := r.entry(n)
		j := job{name: n, desired: e.desired, observed: e.observed}
		r.mu.Unlock()
		if _, err := r.write(ctx, j); err != nil && !apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// Run writes objects until ctx ends. Before Run the Reconciler must have observed all existing
// objects and have all desired states: with a part of them, it would delete the rest.
func (r *Reconciler) Run(ctx context.Context) error {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		next, ok := r.Flush(ctx, time.Now())
		if ok {
			t.Reset(time.Until(next))
		} else {
			t.Stop()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-r.wake:
		}
	}
}

// Follow runs the Reconciler until ctx ends, and calls update on every change.
func (r *Reconciler) Follow(ctx context.Context, changed <-chan struct{}, update func()) error {
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-changed:
			update()
		}
	}
}

// A job is one write.
type job struct {
	name     types.NamespacedName
	desired  string
	observed *Observed

	// resyncs and fresh are copies of the fields of the entry at the time of the job.
	resyncs int
	fresh   bool
}

// Flush writes the objects that are due, and returns the time of the next write. It returns
// false if there is none.
func (r *Reconciler) Flush(ctx context.Context, instant time.Time) (time.Time, bool) {
	for _, j := range r.jobs(instant) {
		if ctx.Err() != nil {
			return time.Time{}, false
		}
		observed, err := r.write(ctx, j)
		r.finish(j, observed, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var next time.Time
	for _, e := range r.entries {
		if at, ok := e.due(); ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, !next.IsZero()
}

// jobs returns the writes that are due, sorted by name.
func (r *Reconciler) jobs(instant time.Time) []job {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []job
	for n, e := range r.entries {
		if e.idle() {
			delete(r.entries, n)
			continue
		}
		e.foreign = e.desired == "" && r.excluded != nil && r.excluded(n, e.state())
		if at, ok := e.due(); ok && !at.After(instant) {
			out = append(out, job{name: n, desired: e.desired, observed: e.observed, resyncs: e.resyncs, fresh: e.fresh})
		}
	}
	slices.SortFunc(out, func(a, b job) int { return compareNames(a.name, b.name) })
	return out
}

func (r *Reconciler) write(ctx context.Context, j job) (*Observed, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if j.desired != "" {
		return r.writer.Write(ctx, j.name, j.desired, j.observed)
	}
	return nil, r.writer.Delete(ctx, j.name, j.observed)
}

// finish records the result of a write.
func (r *Reconciler) finish(j job, observed *Observed, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(j.name)
	at := time.Now()
	switch {
	case apierrors.IsConflict(err):
		// Another replica wrote first. The watch will deliver its version.
		e.lastWrite = at
		return
	case err != nil:
		if text := errors.Cause(err).Error(); text != e.failure {
			e.failure = text
			r.log.Info("Cannot write an object; retrying", "name", j.name, "error", err)
		}
		e.increaseBackoff(at)
		e.lastWrite = at
		return
	}
	if !j.fresh && j.observed.state() != j.desired {
		e.increaseBackoff(at)
	}
	e.lastWrite, e.failure = at, ""
	e.resyncs -= j.resyncs
	e.fresh = e.fresh && e.desired != j.desired
	if e.observed == j.observed {
		e.observe(observed, at)
	}
	// Otherwise the watch delivered another version during the write. That version may be newer
	// than the one that was written, and with an older version all later writes would conflict.
	// If it is older, the watch delivers the written version next.
	r.log.Debug("Wrote", "name", j.name, "state", j.desired)
}

// entry returns the entry of an object, and adds it if necessary. The caller holds the lock.
func (r *Reconciler) entry(n types.NamespacedName) *entry {
	e := r.entries[n]
	if e == nil {
		e = &entry{}
		r.entries[n] = e
	}
	return e
}

// notify wakes Run.
func (r *Reconciler) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// compareNames compares by namespace, then by name.
func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package keep

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

// writeLimit is how long one write may take.
const writeLimit = 10 * time.Second

// A Seen is an object as it was seen last.
type Seen struct {
	// State that it is in, which is compared with what is wanted. Never empty.
	State string

	// Object itself, not to be changed.
	Object client.Object
}

// state is empty for no object.
func (s *Seen) state() string {
	if s == nil {
		return ""
	}
	return s.State
}

// A Writer writes objects of one kind. An error that says Conflict means that another
// one was first, and is nothing to tell.
type Writer interface {
	// Write the object so that it is in the wanted state, and return it. The object
	// is made if seen is nil, and else replaced if it still has the version that was
	// seen. An object that is in the state already must change all the same.
	Write(ctx context.Context, name types.NamespacedName, want string, seen *Seen) (*Seen, error)

	// Delete the object if it still has the version that was seen.
	Delete(ctx context.Context, name types.NamespacedName, seen *Seen) error
}

// A Keeper keeps objects of one kind. Make one by NewKeeper.
type Keeper struct {
	kind   string
	writer Writer
	log    logging.Logger
	wake   chan struct{}

	// leave says what Leave says. It may be nil.
	leave func(n types.NamespacedName, state string) bool

	// mu guards what follows. It is not held while anything is written.
	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
}

// NewKeeper returns one that writes nothing until it runs. The kind is for people.
func NewKeeper(kind string, w Writer, log logging.Logger) *Keeper {
	return &Keeper{
		kind:    kind,
		writer:  w,
		log:     log.WithValues("kind", kind),
		wake:    make(chan struct{}, 1),
		entries: map[types.NamespacedName]*entry{},
	}
}

// Leave objects alone, before the Keeper runs: those that are not wanted here, and of which
// leave says by name and state that another extension keeps them.
func (k *Keeper) Leave(leave func(n types.NamespacedName, state string) bool) { k.leave = leave }

// Want these states, by the names of objects. An object without one is to be deleted.
func (k *Keeper) Want(states map[types.NamespacedName]string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n, s := range states {
		k.entry(n).wants(s)
	}
	for n, e := range k.entries {
		if _, ok := states[n]; !ok {
			e.wants("")
		}
	}
	k.wakeUp()
}

// Saw an object as it is now. Nil says that there is none.
func (k *Keeper) Saw(n types.NamespacedName, s *Seen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s == nil && k.entries[n] == nil {
		return
	}
	k.entry(n).sees(s, time.Now())
	k.wakeUp()
}

// Again has an object change once more, though it is as wanted. One that is about to be
// written is not written twice.
func (k *Keeper) Again(n types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.entries[n]; e != nil && e.want != "" {
		e.again++
		k.wakeUp()
	}
}

// Wanted reports whether a state is wanted here, or was.
func (k *Keeper) Wanted(n types.NamespacedName, state string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entries[n]
	return e != nil && (e.want == state || slices.Contains(e.past, state))
}

// Settled are the objects that are as wanted, sorted by name.
func (k *Keeper) Settled() []types.NamespacedName {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []types.NamespacedName
	for n, e := range k.entries {
		if e.want != "" && e.have() == e.want {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, compareNames)
	return out
}

// Touch writes each object that is as wanted once, and ends with ctx. Nothing else may
// run the Keeper meanwhile.
func (k *Keeper) Touch(ctx context.Context) error {
	var errs []error
	for _, n := range k.Settled() {
		k.mu.Lock()
		e := k.entry(n)
		j := job{name: n, want: e.want, seen: e.seen}
		k.mu.Unlock()
		if _, err := k.write(ctx, j); err != nil && !apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// Run writes until ctx ends. All objects must have been seen before, and what is
// wanted must be known: half of it would be taken for all.
func (k *Keeper) Run(ctx context.Context) error {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		next, ok := k.Flush(ctx, time.Now())
		if ok {
			t.Reset(time.Until(next))
		} else {
			t.Stop()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-k.wake:
		}
	}
}

// Follow runs the Keeper, and calls want whenever something has changed, until ctx ends.
func (k *Keeper) Follow(ctx context.Context, changed <-chan struct{}, want func()) error {
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-changed:
			want()
		}
	}
}

// A job is one write.
type job struct {
	name types.NamespacedName
	want string
	seen *Seen

	// again as it was, and fresh.
	again int
	fresh bool
}

// Flush writes what is due, and says when the next is.
func (k *Keeper) Flush(ctx context.Context, now time.Time) (time.Time, bool) {
	for _, j := range k.jobs(now) {
		if ctx.Err() != nil {
			return time.Time{}, false
		}
		seen, err := k.write(ctx, j)
		k.done(j, seen, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var next time.Time
	for _, e := range k.entries {
		if at, ok := e.due(); ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, !next.IsZero()
}

// jobs that are due, by name.
func (k *Keeper) jobs(now time.Time) []job {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []job
	for n, e := range k.entries {
		if e.idle() {
			delete(k.entries, n)
			continue
		}
		e.others = e.want == "" && k.leave != nil && k.leave(n, e.have())
		if at, ok := e.due(); ok && !at.After(now) {
			out = append(out, job{name: n, want: e.want, seen: e.seen, again: e.again, fresh: e.fresh})
		}
	}
	slices.SortFunc(out, func(a, b job) int { return compareNames(a.name, b.name) })
	return out
}

func (k *Keeper) write(ctx context.Context, j job) (*Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	if j.want != "" {
		return k.writer.Write(ctx, j.name, j.want, j.seen)
	}
	return nil, k.writer.Delete(ctx, j.name, j.seen)
}

// done notes what became of a write.
func (k *Keeper) done(j job, seen *Seen, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entry(j.name)
	now := time.Now()
	switch {
	case apierrors.IsConflict(err):
		// Another was first. What it wrote is on its way here.
		e.written = now
		return
	case err != nil:
		if said := errors.Cause(err).Error(); said != e.failure {
			e.failure = said
			k.log.Info("Cannot write an object, and will try again", "name", j.name, "error", err)
		}
		e.grow(now)
		e.written = now
		return
	}
	if !j.fresh && j.seen.state() != j.want {
		e.grow(now)
	}
	e.written, e.failure = now, ""
	e.again -= j.again
	e.fresh = e.fresh && e.want != j.want
	if e.seen == j.seen {
		e.sees(seen, now)
	}
	// Else something came here meanwhile. It may be newer than what was written: with an
	// older version all further writes would conflict. If it is not, that follows.
	k.log.Debug("Wrote", "name", j.name, "state", j.want)
}

// entry of an object. The lock is held.
func (k *Keeper) entry(n types.NamespacedName) *entry {
	e := k.entries[n]
	if e == nil {
		e = &entry{}
		k.entries[n] = e
	}
	return e
}

func (k *Keeper) wakeUp() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// longest is the longest time of a timer: the watcher checks again then.
const longest = 24 * time.Hour

// A Watcher keeps the states of a Store's objects of a kind up to date.
type Watcher[O client.Object, S any] struct {
	kind kind[O, S]
	log  logging.Logger
	pace pace
}

// Run watches objects until ctx ends. It removes objects that are no longer wanted from the store. It
// calls settled once, when the state of each object that was wanted at the start is known.
func (w *Watcher[O, S]) Run(ctx context.Context, settled func()) error {
	running := map[types.NamespacedName]*watch[O, S]{}
	g := sync.WaitGroup{}
	defer g.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := true
	for {
		wanted := map[types.NamespacedName]bool{}
		for _, n := range w.kind.wanted() {
			wanted[n] = true
			if running[n] != nil {
				continue
			}
			started := &watch[O, S]{Watcher: w, name: n, settled: make(chan struct{}), ended: make(chan struct{})}
			started.start(ctx, &g)
			running[n] = started
		}
		for n, started := range running {
			if !wanted[n] {
				started.cancel()
				<-started.ended
				delete(running, n)
				w.kind.set(n, nil)
			}
		}
		if first {
			first = false
			for _, started := range running {
				select {
				case <-started.settled:
				case <-ctx.Done():
				}
			}
			if ctx.Err() == nil {
				settled()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.kind.changed:
		}
	}
}

// A watch of one object. It is the store of a reflector: an informer would need twice as many
// goroutines, and there is one object alone.
type watch[O client.Object, S any] struct {
	*Watcher[O, S]
	name   types.NamespacedName
	cancel context.CancelFunc

	// settled is closed once the state is known, or cannot be for some time, and ended after the watch has
	// ended.
	settled, ended chan struct{}
	closer         sync.Once

	// mu guards the fields below.
	mu sync.Mutex

	// state returns the state at a time. exists reports that there is an object.
	state  func(at time.Time) (S, time.Time)
	exists bool
	due    *time.Timer

	// failures counts failed lists and watches since the object was read.
	failures int
}

func (w *watch[O, S]) start(ctx context.Context, g *sync.WaitGroup) {
	ctx, w.cancel = context.WithCancel(ctx) //nolint:gosec // Run calls it.
	name := fields.OneTermEqualSelector(metav1.ObjectNameField, w.name.Name).String()
	lw := noWatchList{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if err := w.pace.wait(ctx, w.name.Namespace); err != nil {
				return nil, err
			}
			o.FieldSelector = name
			return w.kind.list(ctx, w.name.Namespace, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (kwatch.Interface, error) {
			o.FieldSelector = name
			return w.kind.watch(ctx, w.name.Namespace, o)
		},
	}}
	h := &held[O, S]{watch: w, ctx: ctx}
	r := cache.NewReflectorWithOptions(lw, w.kind.object, h, cache.ReflectorOptions{Name: w.kind.name})
	g.Go(func() {
		defer close(w.ended)
		if !possible(w.name) {
			var none O
			w.changed(ctx, none, false)
			<-ctx.Done()
			return
		}
		// The context's end is the only error.
		_ = retryDelay().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			for {
				attempt, stop := context.WithCancel(ctx)
				h.restart = stop
				err := r.ListAndWatchWithContext(attempt)
				restarted := attempt.Err() != nil
				stop()
				if !restarted {
					if err != nil {
						w.failed(ctx, err)
					}
					return false, nil
				}
				// A large object is no failure, whose delays grow.
				select {
				case <-ctx.Done():
					return false, nil
				case <-time.After(restartPause):
				}
			}
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.due != nil {
			w.due.Stop()
		}
	})
}

// possible reports whether a Secret or ConfigMap may have a name (ValidateSecretName and
// ValidateConfigMapName in Kubernetes' pkg/apis/core/validation/validation.go). References may have any
// text (ObjectName in Gateway API's apis/v1/shared_types.go). The API server does not compute the key of
// another name, and would search the namespace.
func possible(n types.NamespacedName) bool {
	return len(validation.NameIsDNSSubdomain(n.Name, false))+len(validation.ValidateNamespaceName(n.Namespace, false)) == 0
}

// retryDelay returns the delays between two watches, which are those of a reflector's RunWithContext.
// That one cannot be used: it hands errors to nobody (k8s.io/client-go v0.36.3,
// tools/cache/reflector.go).
func retryDelay() wait.DelayFunc {
	b := wait.Backoff{Duration: 800 * time.Millisecond, Cap: 30 * time.Second, Steps: 38, Factor: 2, Jitter: 1}
	return b.DelayWithReset(clock.RealClock{}, 2*time.Minute)
}

// A noWatchList lists before it watches. With a WatchList (KEP-3157), the buffer of the watch would be as
// large as the object from the start.
type noWatchList struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported implements an interface of k8s.io/client-go/util/watchlist.
func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// largeObject is the size, in bytes, from which an object ends its watch. The buffer of a watch is as
// large as its largest object (decoder in k8s.io/apimachinery/pkg/runtime/serializer/streaming), and one
// namespace may have a hundred watches.
const largeObject = 16 << 10

// restartPause is the time between two watches of an object that is edited while it is large.
const restartPause = 5 * time.Second

// A held is the cache.ReflectorStore of a watch.
type held[O client.Object, S any] struct {
	*watch[O, S]

	ctx context.Context //nolint:containedctx // The methods of the interface have none.

	// restart ends the current watch, and another one follows a list.
	restart context.CancelFunc
}

// Add implements cache.ReflectorStore.
func (h *held[O, S]) Add(o any) error { return h.Update(o) }

// Update implements cache.ReflectorStore.
func (h *held[O, S]) Update(o any) error {
	h.shrink(o)
	h.replace(o)
	return nil
}

// shrink ends the watch after an event with a large object.
func (h *held[O, S]) shrink(o any) {
	if s, ok := o.(interface{ Size() int }); ok && s.Size() > largeObject {
		h.restart()
	}
}

func (h *held[O, S]) replace(o any) {
	obj, ok := o.(O)
	h.changed(h.ctx, obj, ok)
}

// Delete implements cache.ReflectorStore.
func (h *held[O, S]) Delete(o any) error {
	// The event has the whole object.
	h.shrink(o)
	h.remove()
	return nil
}

func (h *held[O, S]) remove() {
	var none O
	h.changed(h.ctx, none, false)
}

// Replace implements cache.ReflectorStore. An empty list says that the object does not exist.
func (h *held[O, S]) Replace(all []any, _ string) error {
	if len(all) == 0 {
		h.remove()
		return nil
	}
	h.replace(all[0])
	return nil
}

// Resync implements cache.ReflectorStore.
func (h *held[O, S]) Resync() error { return nil }

func (w *watch[O, S]) changed(ctx context.Context, obj O, exists bool) {
	state := w.kind.read(w.name, obj)
	w.mu.Lock()
	w.state, w.exists, w.failures = state, exists, 0
	w.mu.Unlock()
	w.publish(ctx)
}

// publish stores the current state of the object, and schedules the next call for the time at which
// it changes.
func (w *watch[O, S]) publish(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		// The store may have dropped it already.
		return
	}
	at := time.Now()
	s, due := w.state(at)
	w.set(s)
	if w.due != nil {
		w.due.Stop()
	}
	if !due.IsZero() {
		w.due = time.AfterFunc(min(due.Sub(at), longest), func() { w.publish(ctx) })
	}
}

func (w *watch[O, S]) set(s S) {
	w.kind.set(w.name, &s)
	w.closer.Do(func() { close(w.settled) })
}

// failed handles a failed list or watch, which is retried. A known object stays: a starting API server
// may refuse permitted requests for a moment.
func (w *watch[O, S]) failed(ctx context.Context, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w.log.Debug("Cannot watch an object by its name, and will try again", "kind", w.kind.name, "name", w.name, "error", err)
	if kerrors.IsForbidden(err) && !w.exists {
		w.set(w.kind.unreadable(w.name))
		return
	}
	if w.failures++; w.failures == patientFailures {
		w.log.Info("An object cannot be read, and what needs it is closed", "kind", w.kind.name, "name", w.name, "error", err)
		w.closer.Do(func() { close(w.settled) })
	}
}

// patientFailures is the number of failures after which a replica that starts waits no longer for an
// object: one that the API server cannot read must not keep it from serving all others.
const patientFailures = 5

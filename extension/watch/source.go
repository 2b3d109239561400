// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// deletionDelay is how long a route stays known after its deletion. Envoy Gateway sees the
// deletion at about the same time. If it translated the route once more while the route is
// unknown here, it would give Envoy a separate cluster for the route, and remove that
// cluster with the next translation. Envoy then waits 15 seconds for the endpoints of that
// cluster, and applies no other change of clusters in that time (seen with Envoy 1.39.1).
const deletionDelay = 3 * time.Second

// A Source feeds a Store with objects from informers.
type Source struct {
	kinds *Kinds
	store *index.Store
	log   logging.Logger

	// read is the store's Read.
	read func(index.Change) index.Change

	// mu guards the fields below.
	mu sync.Mutex

	// listing are the kinds that are watched but not listed yet.
	listing map[string]struct{}

	pending []index.Change

	// deletions are the pending deletions of routes, with the time at which to apply them.
	deletions map[routeID]deletion

	wake   chan struct{}
	synced chan struct{}
}

// A routeID identifies a route by kind and name.
type routeID struct {
	kind reflect.Type
	client.ObjectKey
}

// A deletion of a route is applied later.
type deletion struct {
	change index.Change
	at     time.Time
}

// NewSource returns a Source that feeds a store with objects of some kinds once it is
// started.
func NewSource(i Informers, kinds map[string]client.Object, s *index.Store, log logging.Logger) *Source {
	return &Source{
		kinds:     NewKinds(i, kinds, log),
		store:     s,
		read:      s.Read,
		log:       log,
		listing:   map[string]struct{}{},
		deletions: map[routeID]deletion{},
		wake:      make(chan struct{}, 1),
		synced:    make(chan struct{}),
	}
}

// Start feeds the store until the context ends. It creates the first Snapshot when every
// kind that the API server knows is listed, so that no Snapshot is incomplete. If the CRD of
// a kind is created later, Start watches the kind within 10 seconds.
func (s *Source) Start(ctx context.Context) error {
	retry := time.NewTicker(RetryInterval)
	defer retry.Stop()
	s.watch(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-retry.C:
			s.watch(ctx)
		case <-s.wake:
		}
		s.flush()
	}
}

// Synced returns a channel that is closed when the first Snapshot exists.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// HasSynced reports whether the first Snapshot exists.
func (s *Source) HasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// Waiting returns the kinds that do not exist or are not listed yet, each with the reason,
// sorted. Readiness checks and messages use it.
func (s *Source) Waiting() []string {
	var out []string
	for k, err := range s.kinds.Missing() {
		out = append(out, fmt.Sprintf("%s: %v", k, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.listing {
		out = append(out, k+": is not listed yet; may the extension list and watch it?")
	}
	slices.Sort(out)
	return out
}

// watch starts to watch the kinds that are not watched yet.
func (s *Source) watch(ctx context.Context) {
	s.kinds.Try(ctx, func(kind string, i cache.Informer) error { return s.watchKind(ctx, kind, i) })
	s.notify()
}

// watchKind watches a kind, and waits in the background until it is listed.
func (s *Source) watchKind(ctx context.Context, kind string, i cache.Informer) error {
	s.mu.Lock()
	s.listing[kind] = struct{}{}
	s.mu.Unlock()
	r, err := i.AddEventHandler(Handler(s.changed))
	if err != nil {
		return errors.Wrap(err, "cannot add an event handler")
	}
	go func() {
		select {
		case <-ctx.Done():
			return
		case <-r.HasSyncedChecker().Done():
		}
		s.mu.Lock()
		delete(s.listing, kind)
		s.mu.Unlock()
		s.notify()
	}()
	return nil
}

// changed queues the change of an object, unless it makes no difference.
func (s *Source) changed(old, current client.Object) {
	c := index.Change{Object: current}
	switch {
	case current == nil:
		c = index.Change{Object: old, Deleted: true}
	case old != nil && parse.Same(old, current):
		return
	}
	// Others that wait for the store must not wait for an object that takes long to read. Each kind has
	// its own goroutine here.
	c = s.read(c)
	s.mu.Lock()
	s.enqueue(c)
	s.mu.Unlock()
	s.notify()
}

// enqueue queues a change. It delays deletions of routes. The caller holds the lock.
func (s *Source) enqueue(c index.Change) {
	if !isRoute(c.Object) {
		s.pending = append(s.pending, c)
		return
	}
	id := routeID{kind: reflect.TypeOf(c.Object), ObjectKey: client.ObjectKeyFromObject(c.Object)}
	if !c.Deleted {
		// The route exists again.
		delete(s.deletions, id)
		s.pending = append(s.pending, c)
		return
	}
	s.deletions[id] = deletion{change: c, at: time.Now().Add(deletionDelay)}
	time.AfterFunc(deletionDelay, s.notify)
}

// isRoute reports whether an object is a route.
func isRoute(o client.Object) bool {
	switch o.(type) {
	case *gwapiv1.HTTPRoute, *gwapiv1.GRPCRoute, *gwapiv1.TCPRoute, *gwapiv1.UDPRoute, *gwapiv1.TLSRoute:
		return true
	}
	return false
}

// dueDeletions returns the deletions that are due. The caller holds the lock.
func (s *Source) dueDeletions() []index.Change {
	var out []index.Change
	at := time.Now()
	for id, l := range s.deletions {
		if !l.at.After(at) {
			out = append(out, l.change)
			delete(s.deletions, id)
		}
	}
	return out
}

// notify wakes up Start to apply the pending changes.
func (s *Source) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// flush applies the pending changes to the store.
func (s *Source) flush() {
	s.mu.Lock()
	if !s.HasSynced() && !s.listed() {
		s.mu.Unlock()
		return
	}
	changes := slices.Concat(s.pending, s.dueDeletions())
	s.pending = nil
	s.mu.Unlock()
	if len(changes) > 0 {
		if err := s.store.Apply(changes...); err != nil {
			s.log.Info("Cannot use an object; the others are", "error", err)
		}
	}
	if !s.HasSynced() {
		close(s.synced)
	}
}

// listed reports whether every kind that the API server knows is listed. The caller holds
// the lock.
func (s *Source) listed() bool {
	return s.kinds.Complete() && len(s.listing) == 0
}

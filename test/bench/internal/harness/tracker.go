// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// maxNamed is how many objects an error names.
const maxNamed = 3

// A State is the state of an object that exists.
type State struct {
	// Ready reports whether the object is ready. ReadyAt is when it first was.
	Ready   bool
	ReadyAt time.Time
	// Deleting reports whether the object is being deleted.
	Deleting bool
	// Message of the first condition that is not met.
	Message string
}

// A Tracker watches all objects of a kind. It is safe for concurrent use.
type Tracker struct {
	mu     sync.Mutex
	states map[string]State
}

// Track watches the objects of a kind until ctx ends. It returns once it has all existing objects.
func (e *Env) Track(ctx context.Context, gvk schema.GroupVersionKind) (*Tracker, error) {
	c, err := cache.New(e.api.Config, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a cache")
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, errors.Wrapf(err, "cannot watch %s", gvk.Kind)
	}
	t := &Tracker{states: map[string]State{}}
	reg, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    t.seen,
		UpdateFunc: func(_, o any) { t.seen(o) },
		DeleteFunc: t.gone,
	})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot watch %s", gvk.Kind)
	}
	go func() {
		if err := c.Start(ctx); err != nil && ctx.Err() == nil {
			panic(err) // Later measurements would be wrong.
		}
	}()
	if !toolscache.WaitForCacheSync(ctx.Done(), reg.HasSynced) {
		return nil, errors.Wrapf(ctx.Err(), "cannot list %s", gvk.Kind)
	}
	return t, nil
}

func key(o metav1.Object) string {
	return o.GetNamespace() + "/" + o.GetName()
}

func (t *Tracker) seen(o any) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	at := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states[key(u)]
	s.Deleting = u.GetDeletionTimestamp() != nil
	s.Ready, s.Message = ready(u)
	if s.Ready && s.ReadyAt.IsZero() {
		s.ReadyAt = at
	}
	t.states[key(u)] = s
}

func (t *Tracker) gone(o any) {
	if d, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.states, key(u))
}

// ready reports whether an object is Synced and Ready, and returns a message if not.
func ready(u *unstructured.Unstructured) (bool, string) {
	cs, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return false, "the conditions are malformed"
	}
	met := map[string]bool{}
	message := "the object has no conditions"
	for _, c := range cs {
		m, ok := c.(map[string]any)
		if !ok {
			continue
		}
		kind := fmt.Sprint(m["type"])
		met[kind] = m["status"] == "True"
		if !met[kind] {
			message = fmt.Sprintf("%s is %v: %v %v", kind, m["status"], m["reason"], m["message"])
		}
	}
	return met[string(xpv2.TypeReady)] && met[string(xpv2.TypeSynced)], message
}

// States returns the states of all objects by NAMESPACE/NAME.
func (t *Tracker) States() map[string]State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.states)
}

// AllReady returns an error unless this many objects exist and all are ready.
func (t *Tracker) AllReady(n int) error {
	states := t.States()
	var named []string
	missing := n - len(states)
	for _, k := range slices.Sorted(maps.Keys(states)) {
		s := states[k]
		if s.Ready {
			continue
		}
		if missing++; len(named) < maxNamed {
			named = append(named, k+": "+s.Message)
		}
	}
	if missing == 0 {
		return nil
	}
	return errors.Errorf("%d of %d are not ready: %s", missing, n, strings.Join(named, "; "))
}

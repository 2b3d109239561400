// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

var gw = types.NamespacedName{Namespace: "infra", Name: "gw"}

// A cluster simulates an API server with one object, and the replicas that watch the object.
type cluster struct {
	mu      sync.Mutex
	version int
	object  *Observed
	writes  []string
	fail    error

	watchers []*Reconciler
}

func (c *cluster) Write(_ context.Context, _ types.NamespacedName, want string, observed *Observed) (*Observed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check(observed); err != nil {
		return nil, err
	}
	c.set(want)
	return c.object, nil
}

func (c *cluster) Delete(_ context.Context, _ types.NamespacedName, observed *Observed) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check(observed); err != nil {
		return err
	}
	c.set("")
	return nil
}

// edit calls a function that changes the cluster.
func (c *cluster) edit(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
}

func (c *cluster) check(observed *Observed) error {
	if c.fail != nil {
		return c.fail
	}
	if (observed == nil) != (c.object == nil) || observed != nil && observed.Object.GetResourceVersion() != c.object.Object.GetResourceVersion() {
		return errors.Wrap(apierrors.NewConflict(schema.GroupResource{}, "gw", errors.New("changed")), "cannot apply")
	}
	return nil
}

func (c *cluster) set(state string) {
	c.version++
	c.writes = append(c.writes, state)
	c.object = NewObserved(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(c.version)}}, state)
	current := c.object
	for _, r := range c.watchers {
		// Watches deliver changes with a delay.
		time.AfterFunc(20*time.Millisecond, func() { r.Observe(gw, current) })
	}
}

// replica starts a Reconciler that runs until the test ends.
func (c *cluster) replica(ctx context.Context, t *testing.T) *Reconciler {
	t.Helper()
	r := NewReconciler("Thing", c, logging.NewNopLogger())
	r.Observe(gw, c.object)
	c.watchers = append(c.watchers, r)
	go func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return r
}

func want(r *Reconciler, state string) {
	if state == "" {
		r.SetDesired(nil)
		return
	}
	r.SetDesired(map[types.NamespacedName]string{gw: state})
}

func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestReconciler(t *testing.T) {
	cases := map[string]struct {
		reason string
		action func(c *cluster, replica func() *Reconciler)
		want   []string
	}{
		"AtOnce": {
			reason: "The first change is written at once.",
			action: func(_ *cluster, replica func() *Reconciler) {
				want(replica(), "1")
				after(time.Millisecond)
			},
			want: []string{"1"},
		},
		"Debounced": {
			reason: "Of many changes in a row, the last is written after the debounce interval.",
			action: func(_ *cluster, replica func() *Reconciler) {
				r := replica()
				for i := range 10 {
					want(r, strconv.Itoa(i))
					after(time.Millisecond)
				}
				after(time.Second)
			},
			want: []string{"0", "9"},
		},
		"AtRest": {
			reason: "Without changes, no replica writes.",
			action: func(_ *cluster, replica func() *Reconciler) {
				a, b := replica(), replica()
				want(a, "1")
				want(b, "1")
				after(24 * time.Hour)
				want(a, "1")
				want(b, "1")
				after(24 * time.Hour)
			},
			want: []string{"1"},
		},
		"Lagging": {
			reason: "A lagging replica waits for the state that it desires next.",
			action: func(_ *cluster, replica func() *Reconciler) {
				a, b := replica(), replica()
				want(a, "1")
				want(b, "1")
				after(time.Second)
				want(a, "2")
				after(time.Second)
				want(b, "2")
				after(time.Hour)
			},
			want: []string{"1", "2"},
		},
		"LaggingBehindTwo": {
			reason: "A lagging replica does not write a state in between, either.",
			action: func(_ *cluster, replica func() *Reconciler) {
				a, b := replica(), replica()
				want(a, "1")
				want(b, "1")
				after(time.Second)
				want(a, "2")
				want(a, "3")
				after(500 * time.Millisecond)
				want(b, "2")
				after(500 * time.Millisecond)
				want(b, "3")
				after(time.Hour)
			},
			want: []string{"1", "3"},
		},
		"Stuck": {
			reason: "A replica whose informers have stopped is overruled, and writes less and less often.",
			action: func(c *cluster, replica func() *Reconciler) {
				a, b := replica(), replica()
				want(a, "1")
				want(b, "1")
				after(time.Second)
				want(a, "2")
				after(24 * time.Hour)
				c.edit(func() {
					if n := len(c.writes); n > 1000 {
						c.writes = []string{"too many writes:", strconv.Itoa(n)}
						return
					}
					c.writes = c.writes[:2]
				})
			},
			want: []string{"1", "2"},
		},
		"WriterIsGone": {
			reason: "A state that no replica desires is replaced, even if another process wrote it.",
			action: func(c *cluster, replica func() *Reconciler) {
				c.set("foreign")
				r := replica()
				want(r, "1")
				after(time.Second)
				c.edit(func() { c.writes = append(c.writes, "delay") })
				after(2 * time.Second)
			},
			want: []string{"foreign", "delay", "1"},
		},
		"LeftOver": {
			reason: "An object that is not desired is deleted after the delay.",
			action: func(c *cluster, replica func() *Reconciler) {
				c.set("foreign")
				want(replica(), "")
				after(3 * time.Second)
			},
			want: []string{"foreign", ""},
		},
		"Last": {
			reason: "An object that is no longer desired is deleted at once.",
			action: func(_ *cluster, replica func() *Reconciler) {
				r := replica()
				want(r, "1")
				after(time.Second)
				want(r, "")
				after(time.Millisecond)
			},
			want: []string{"1", ""},
		},
		"LaggingBehindTheLast": {
			reason: "A lagging replica does not restore a deleted object.",
			action: func(_ *cluster, replica func() *Reconciler) {
				a, b := replica(), replica()
				want(a, "1")
				want(b, "1")
				after(time.Second)
				want(a, "")
				after(time.Second)
				want(b, "")
				after(time.Hour)
			},
			want: []string{"1", ""},
		},
		"Resync": {
			reason: "Resync changes an object. Requests at the same time cause one write.",
			action: func(_ *cluster, replica func() *Reconciler) {
				r := replica()
				want(r, "1")
				after(time.Second)
				r.Resync(gw)
				r.Resync(gw)
				after(time.Hour)
			},
			want: []string{"1", "1"},
		},
		"Tampered": {
			reason: "An object that another client deleted is created again.",
			action: func(c *cluster, replica func() *Reconciler) {
				want(replica(), "1")
				after(time.Second)
				c.set("")
				after(3 * time.Second)
			},
			want: []string{"1", "", "1"},
		},
		"Failing": {
			reason: "Failed writes are retried less and less often, and a new state is written at once.",
			action: func(c *cluster, replica func() *Reconciler) {
				c.edit(func() { c.fail = errors.New("no") })
				r := replica()
				want(r, "1")
				after(time.Hour)
				c.edit(func() { c.fail = nil })
				want(r, "2")
				after(time.Second)
			},
			want: []string{"2"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tc.action(c, func() *Reconciler { return c.replica(ctx, t) })
				if diff := cmp.Diff(tc.want, c.writes); diff != "" {
					t.Errorf("\n%s\nwrites: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestExclude checks that a Reconciler ignores an object while another extension manages it.
func TestExclude(t *testing.T) {
	c := &cluster{}
	c.set("foreign")
	c.writes = nil
	r, foreign := NewReconciler("Thing", c, logging.NewNopLogger()), true
	r.Exclude(func(n types.NamespacedName, state string) bool { return foreign && n == gw && state == "foreign" })
	r.Observe(gw, c.object)
	want(r, "")
	late := time.Now().Add(time.Hour)
	if next, ok := r.Flush(t.Context(), late); ok || len(c.writes) > 0 {
		t.Errorf("writes %v, next write at %v; want none while another extension manages the object", c.writes, next)
	}
	foreign = false
	if r.Flush(t.Context(), late); len(c.writes) != 1 {
		t.Errorf("%d writes of an object that no extension manages, want 1", len(c.writes))
	}
}

// TestSlowResponse checks that the next desired state is written even if another client changes
// the object, and the watch delivers that change, before the response to a write arrives.
func TestSlowResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &cluster{}
		r := NewReconciler("Thing", &slow{c}, logging.NewNopLogger())
		c.watchers = append(c.watchers, r)
		go func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		want(r, "a")
		after(time.Second)
		want(r, "b")
		after(time.Second)
		if got := c.object.State; got != "b" {
			t.Errorf("the object is in state %q, want b; writes: %q", got, c.writes)
		}
	})
}

// A slow cluster returns from Write after another client has changed the object and the watch
// has delivered the change.
type slow struct{ *cluster }

func (s *slow) Write(ctx context.Context, n types.NamespacedName, want string, observed *Observed) (*Observed, error) {
	out, err := s.cluster.Write(ctx, n, want, observed)
	if err != nil {
		return nil, err
	}
	// A watch delivers changes in order.
	time.Sleep(time.Millisecond)
	s.set(want)
	time.Sleep(100 * time.Millisecond)
	return out, nil
}

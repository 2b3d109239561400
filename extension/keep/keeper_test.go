// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"
	"strconv"
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

// A cluster is the API server of tests, with one object, and the replicas that watch
// it. It is used in one bubble, so it needs no lock but time.
type cluster struct {
	version int
	object  *Seen
	writes  []string
	fail    error

	watchers []*Keeper
}

func (c *cluster) Write(_ context.Context, _ types.NamespacedName, want string, seen *Seen) (*Seen, error) {
	if err := c.check(seen); err != nil {
		return nil, err
	}
	c.set(want)
	return c.object, nil
}

func (c *cluster) Delete(_ context.Context, _ types.NamespacedName, seen *Seen) error {
	if err := c.check(seen); err != nil {
		return err
	}
	c.set("")
	return nil
}

func (c *cluster) check(seen *Seen) error {
	if c.fail != nil {
		return c.fail
	}
	if (seen == nil) != (c.object == nil) || seen != nil && seen.Object.GetResourceVersion() != c.object.Object.GetResourceVersion() {
		return errors.Wrap(apierrors.NewConflict(schema.GroupResource{}, "gw", errors.New("changed")), "cannot apply")
	}
	return nil
}

func (c *cluster) set(state string) {
	c.version++
	c.writes = append(c.writes, state)
	c.object = See(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(c.version)}}, state)
	now := c.object
	for _, k := range c.watchers {
		// Watches take a moment.
		time.AfterFunc(20*time.Millisecond, func() { k.Saw(gw, now) })
	}
}

// replica runs until the test ends.
func (c *cluster) replica(ctx context.Context, t *testing.T) *Keeper {
	t.Helper()
	k := NewKeeper("Thing", c, logging.NewNopLogger())
	k.Saw(gw, c.object)
	c.watchers = append(c.watchers, k)
	go func() {
		if err := k.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return k
}

func want(k *Keeper, state string) {
	if state == "" {
		k.Want(nil)
		return
	}
	k.Want(map[types.NamespacedName]string{gw: state})
}

func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestKeeper(t *testing.T) {
	cases := map[string]struct {
		reason string
		do     func(c *cluster, replica func() *Keeper)
		want   []string
	}{
		"AtOnce": {
			reason: "The first change should be written at once.",
			do: func(_ *cluster, replica func() *Keeper) {
				want(replica(), "1")
				after(time.Millisecond)
			},
			want: []string{"1"},
		},
		"Debounced": {
			reason: "Of many changes in a row the last should be written, a moment later.",
			do: func(_ *cluster, replica func() *Keeper) {
				k := replica()
				for i := range 10 {
					want(k, strconv.Itoa(i))
					after(time.Millisecond)
				}
				after(time.Second)
			},
			want: []string{"0", "9"},
		},
		"AtRest": {
			reason: "At rest nothing should be written, whoever looks.",
			do: func(_ *cluster, replica func() *Keeper) {
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
			reason: "A replica that lags should wait for what it will want next.",
			do: func(_ *cluster, replica func() *Keeper) {
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
			reason: "A replica that lags should not write what is between, either.",
			do: func(_ *cluster, replica func() *Keeper) {
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
			reason: "A replica whose informers are dead should be overruled, and grow quiet.",
			do: func(c *cluster, replica func() *Keeper) {
				a, b := replica(), replica()
				want(a, "1")
				want(b, "1")
				after(time.Second)
				want(a, "2")
				after(24 * time.Hour)
				if n := len(c.writes); n > 1000 {
					c.writes = []string{"they fight:", strconv.Itoa(n)}
					return
				}
				c.writes = c.writes[:2]
			},
			want: []string{"1", "2"},
		},
		"WriterIsGone": {
			reason: "A state that nobody wants any more should go, though nobody here wrote it.",
			do: func(c *cluster, replica func() *Keeper) {
				c.set("of another")
				k := replica()
				want(k, "1")
				after(time.Second)
				c.writes = append(c.writes, "patience")
				after(2 * time.Second)
			},
			want: []string{"of another", "patience", "1"},
		},
		"LeftOver": {
			reason: "An object that is not wanted should be deleted, in time.",
			do: func(c *cluster, replica func() *Keeper) {
				c.set("of another")
				want(replica(), "")
				after(3 * time.Second)
			},
			want: []string{"of another", ""},
		},
		"Last": {
			reason: "With the last reason for it an object should go at once.",
			do: func(_ *cluster, replica func() *Keeper) {
				k := replica()
				want(k, "1")
				after(time.Second)
				want(k, "")
				after(time.Millisecond)
			},
			want: []string{"1", ""},
		},
		"LaggingBehindTheLast": {
			reason: "A replica that lags should not bring back what is rightly gone.",
			do: func(_ *cluster, replica func() *Keeper) {
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
		"Again": {
			reason: "An object should change on request, once for requests at a time.",
			do: func(_ *cluster, replica func() *Keeper) {
				k := replica()
				want(k, "1")
				after(time.Second)
				k.Again(gw)
				k.Again(gw)
				after(time.Hour)
			},
			want: []string{"1", "1"},
		},
		"Tampered": {
			reason: "An object that somebody else deleted should come back, unless it was with reason.",
			do: func(c *cluster, replica func() *Keeper) {
				want(replica(), "1")
				after(time.Second)
				c.set("")
				after(3 * time.Second)
			},
			want: []string{"1", "", "1"},
		},
		"Failing": {
			reason: "Failures should be tried again ever less often, and a new state at once.",
			do: func(c *cluster, replica func() *Keeper) {
				c.fail = errors.New("no")
				k := replica()
				want(k, "1")
				after(time.Hour)
				c.fail = nil
				want(k, "2")
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
				tc.do(c, func() *Keeper { return c.replica(ctx, t) })
				if diff := cmp.Diff(tc.want, c.writes); diff != "" {
					t.Errorf("\n%s\nwrites: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestLeave shows that what another extension keeps is left alone, as long as it does.
func TestLeave(t *testing.T) {
	c := &cluster{}
	c.set("theirs")
	c.writes = nil
	k, theirs := NewKeeper("Thing", c, logging.NewNopLogger()), true
	k.Leave(func(n types.NamespacedName, state string) bool { return theirs && n == gw && state == "theirs" })
	k.Saw(gw, c.object)
	want(k, "")
	late := time.Now().Add(time.Hour)
	if next, ok := k.Flush(t.Context(), late); ok || len(c.writes) > 0 {
		t.Errorf("it is written (%v), or to be at %v, although another extension keeps it", c.writes, next)
	}
	theirs = false
	if k.Flush(t.Context(), late); len(c.writes) != 1 {
		t.Errorf("%d writes of what nobody keeps any more, want 1", len(c.writes))
	}
}

// TestSlowAnswer has another one change the object, and the watch tell of it, before the
// answer to a write is here. What is wanted next must be written all the same.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &cluster{}
		k := NewKeeper("Thing", &slow{c}, logging.NewNopLogger())
		c.watchers = append(c.watchers, k)
		go func() {
			if err := k.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		want(k, "a")
		after(time.Second)
		want(k, "b")
		after(time.Second)
		if got := c.object.State; got != "b" {
			t.Errorf("the object is in state %q, not in b; written were %q", got, c.writes)
		}
	})
}

// slow answers come after another one has changed the object, and the watch has told.
type slow struct{ *cluster }

func (s *slow) Write(ctx context.Context, n types.NamespacedName, want string, seen *Seen) (*Seen, error) {
	out, err := s.cluster.Write(ctx, n, want, seen)
	if err != nil {
		return nil, err
	}
	// A watch tells of changes in their order.
	time.Sleep(time.Millisecond)
	s.set(want)
	time.Sleep(100 * time.Millisecond)
	return out, nil
}

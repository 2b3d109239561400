// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// leaseName is the Lease of the tests.
const leaseName = "reports"

// Times of the Lease.
var (
	leaseTime = DefaultTiming().Lease
	tryTime   = DefaultTiming().Try
)

// A cluster has a Lease, for which replicas contend, and notes what they do.
type cluster struct {
	kube *fake.Clientset

	mu    sync.Mutex
	notes []string

	// failure is the answer to all requests, and conflict to updates. Nil is none.
	failure, conflict error

	// ends end the contexts of the replicas that run, and runs waits for all.
	ends map[string]context.CancelFunc
	runs sync.WaitGroup
}

func newCluster() *cluster {
	// Without the management of fields, which takes long.
	c := &cluster{kube: fake.NewSimpleClientset(), ends: map[string]context.CancelFunc{}}
	c.kube.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failure != nil {
			return true, nil, c.failure
		}
		if a.GetVerb() == "update" && c.conflict != nil {
			return true, nil, c.conflict
		}
		return false, nil, nil
	})
	return c
}

// note notes what happened.
func (c *cluster) note(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, s)
}

// answer makes requests fail, and updates conflict.
func (c *cluster) answer(failure, conflict error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure, c.conflict = failure, conflict
}

// start starts a replica with duties, which take some time to end.
func (c *cluster) start(t *testing.T, name string, drain time.Duration, duties ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c.ends[name] = cancel
	l := &Leader{timing: DefaultTiming(), lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "system", Name: leaseName},
		Client:     c.kube.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name},
	}}
	for i, duty := range duties {
		// Duties, which have no order, begin and end in that of the list.
		delay := time.Duration(i) * time.Millisecond
		l.duties = append(l.duties, func(ctx context.Context) {
			<-time.After(delay)
			c.note(name + " begins " + duty)
			<-ctx.Done()
			<-time.After(drain + delay)
			c.note(name + " ends " + duty)
		})
	}
	c.runs.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Errorf("Run(...): %v", err)
		}
		c.note(name + " returns, Lease of " + c.holder(t))
	})
}

// end ends the context of a replica.
func (c *cluster) end(name string) {
	c.note(name + " is asked to end")
	c.ends[name]()
	delete(c.ends, name)
}

// holder returns who holds the Lease, and for how long without renewing it.
func (c *cluster) holder(t *testing.T) string {
	t.Helper()
	o, err := c.kube.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "system", leaseName)
	if kerrors.IsNotFound(err) {
		return "no replica, which does not exist"
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	spec := o.(*coordinationv1.Lease).Spec
	if h := ptr.Deref(spec.HolderIdentity, ""); h != "" {
		return h + " for " + (time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second).String()
	}
	return "no replica"
}

// give gives the Lease to a replica that is not simulated and does not renew it.
func (c *cluster) give(t *testing.T, name string) {
	t.Helper()
	c.note("Lease of " + name)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: leaseName},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(name), LeaseDurationSeconds: ptr.To(int32(leaseTime / time.Second)),
			AcquireTime: ptr.To(metav1.NowMicro()), RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	if err := c.kube.Tracker().Delete(leases, "system", leaseName); err != nil && !kerrors.IsNotFound(err) {
		t.Error(err)
	}
	if err := c.kube.Tracker().Create(leases, l, "system"); err != nil {
		t.Error(err)
	}
}

// TestRun checks when duties begin and end: never those of two replicas at once, and never twice those of
// one. The time is simulated.
func TestRun(t *testing.T) {
	errDown := errors.New("the API server is down")
	errConflict := kerrors.NewConflict(coordinationv1.Resource("leases"), leaseName, errors.New("it has changed"))
	cases := map[string]struct {
		reason string

		// events happen at times since the start. After half an hour each replica is asked to end.
		events map[time.Duration]func(*testing.T, *cluster)
		want   []string
	}{
		"Alone": {
			reason: "A replica runs its duties until its context ends, and returns when all of them have ended and the Lease is free.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0: func(t *testing.T, c *cluster) { c.start(t, "a", time.Minute, "x", "y") },
			},
			want: []string{"a begins x", "a begins y", "a is asked to end", "a ends x", "a ends y", "a returns, Lease of no replica"},
		},
		"NoDuties": {
			reason: "A replica without duties holds the Lease.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:           func(t *testing.T, c *cluster) { c.start(t, "a", 0) },
				time.Minute: func(t *testing.T, c *cluster) { c.note("Lease of " + c.holder(t)) },
			},
			want: []string{"Lease of a for 15s", "a is asked to end", "a returns, Lease of no replica"},
		},
		"Successor": {
			reason: "Another replica begins its duties when the first has ended its own, however long that takes, and at once then.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:                              func(t *testing.T, c *cluster) { c.start(t, "a", time.Minute, "x") },
				time.Second:                    func(t *testing.T, c *cluster) { c.start(t, "b", 0, "x") },
				10 * time.Minute:               func(_ *testing.T, c *cluster) { c.end("a") },
				11*time.Minute + 5*time.Second: func(_ *testing.T, c *cluster) { c.note("a few seconds later") },
			},
			want: []string{"a begins x", "a is asked to end", "a ends x", "a returns, Lease of no replica", "b begins x", "a few seconds later", "b is asked to end", "b ends x", "b returns, Lease of no replica"},
		},
		"Waiting": {
			reason: "A replica that waits for the Lease ends without duties, and leaves the Lease to its holder.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:                func(t *testing.T, c *cluster) { c.start(t, "a", 0, "x") },
				time.Second:      func(t *testing.T, c *cluster) { c.start(t, "b", 0, "x") },
				10 * time.Minute: func(_ *testing.T, c *cluster) { c.end("b") },
			},
			want: []string{"a begins x", "b is asked to end", "b returns, Lease of a for 15s", "a is asked to end", "a ends x", "a returns, Lease of no replica"},
		},
		"Ended": {
			reason: "A replica whose context has ended takes no Lease.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0: func(t *testing.T, c *cluster) {
					c.answer(errDown, nil)
					c.start(t, "a", 0, "x")
				},
				time.Second: func(_ *testing.T, c *cluster) { c.end("a") },
				time.Minute: func(_ *testing.T, c *cluster) { c.answer(nil, nil) },
			},
			want: []string{"a is asked to end", "a returns, Lease of no replica, which does not exist"},
		},
		"Killed": {
			reason: "A replica waits for the Lease of one that was killed to expire, and takes it within seconds then.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:                            func(t *testing.T, c *cluster) { c.give(t, "gone"); c.start(t, "a", 0, "x") },
				leaseTime - time.Millisecond: func(_ *testing.T, c *cluster) { c.note("the Lease expires") },
				leaseTime + 5*time.Second:    func(_ *testing.T, c *cluster) { c.note("a few seconds later") },
			},
			want: []string{"Lease of gone", "the Lease expires", "a begins x", "a few seconds later", "a is asked to end", "a ends x", "a returns, Lease of no replica"},
		},
		"Deleted": {
			reason: "A holder creates a Lease again that is deleted, and its duties go on.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0: func(t *testing.T, c *cluster) { c.start(t, "a", 0, "x") },
				time.Minute: func(t *testing.T, c *cluster) {
					if err := c.kube.Tracker().Delete(coordinationv1.SchemeGroupVersion.WithResource("leases"), "system", leaseName); err != nil {
						t.Error(err)
					}
					c.note("Lease of " + c.holder(t))
				},
				2 * time.Minute: func(t *testing.T, c *cluster) { c.note("Lease of " + c.holder(t)) },
			},
			want: []string{"a begins x", "Lease of no replica, which does not exist", "Lease of a for 15s", "a is asked to end", "a ends x", "a returns, Lease of no replica"},
		},
		"Interrupted": {
			reason: "An API server that fails for less than the time to renew ends no duty.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:                           func(t *testing.T, c *cluster) { c.start(t, "a", 0, "x") },
				time.Minute:                 func(_ *testing.T, c *cluster) { c.answer(errDown, nil); c.note("the API server fails") },
				time.Minute + 5*time.Second: func(_ *testing.T, c *cluster) { c.answer(nil, nil); c.note("it answers") },
			},
			want: []string{"a begins x", "the API server fails", "it answers", "a is asked to end", "a ends x", "a returns, Lease of no replica"},
		},
		"Lost": {
			reason: "One that fails for longer ends the duties before another replica may have the Lease. They begin again afterwards.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:                                 func(t *testing.T, c *cluster) { c.start(t, "a", 0, "x", "y") },
				time.Minute:                       func(_ *testing.T, c *cluster) { c.answer(errDown, nil); c.note("the API server fails") },
				time.Minute + leaseTime - tryTime: func(_ *testing.T, c *cluster) { c.note("the Lease may expire") },
				2 * time.Minute:                   func(_ *testing.T, c *cluster) { c.answer(nil, nil); c.note("it answers") },
			},
			want: []string{"a begins x", "a begins y", "the API server fails", "a ends x", "a ends y", "the Lease may expire", "it answers", "a begins x", "a begins y", "a is asked to end", "a ends x", "a ends y", "a returns, Lease of no replica"},
		},
		"LostAtTheEnd": {
			reason: "A replica that has lost the Lease ends without it.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:               func(t *testing.T, c *cluster) { c.start(t, "a", 0, "x") },
				time.Minute:     func(_ *testing.T, c *cluster) { c.answer(errDown, nil); c.note("the API server fails") },
				2 * time.Minute: func(_ *testing.T, c *cluster) { c.end("a") },
			},
			want: []string{"a begins x", "the API server fails", "a ends x", "a is asked to end", "a returns, Lease of a for 15s"},
		},
		"SlowDuty": {
			reason: "A duty that takes long to end is not begun a second time before, though the Lease is free.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:                            func(t *testing.T, c *cluster) { c.start(t, "a", 10*time.Minute, "x") },
				time.Minute:                  func(_ *testing.T, c *cluster) { c.answer(errDown, nil); c.note("the API server fails") },
				time.Minute + 20*time.Second: func(_ *testing.T, c *cluster) { c.answer(nil, nil); c.note("it answers") },
				8 * time.Minute:              func(_ *testing.T, c *cluster) { c.note("minutes later") },
			},
			want: []string{"a begins x", "the API server fails", "it answers", "minutes later", "a ends x", "a begins x", "a is asked to end", "a ends x", "a returns, Lease of no replica"},
		},
		"Taken": {
			reason: "A holder whose Lease another replica has taken ends its duties, leaves the Lease alone, and waits for it.",
			events: map[time.Duration]func(*testing.T, *cluster){
				0:                            func(t *testing.T, c *cluster) { c.start(t, "a", 0, "x") },
				time.Minute:                  func(t *testing.T, c *cluster) { c.answer(nil, errConflict); c.give(t, "other") },
				time.Minute + 14*time.Second: func(t *testing.T, c *cluster) { c.answer(nil, nil); c.note("Lease of " + c.holder(t)) },
			},
			want: []string{"a begins x", "Lease of other", "a ends x", "Lease of other for 15s", "a begins x", "a is asked to end", "a ends x", "a returns, Lease of no replica"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, start := newCluster(), time.Now()
				for _, at := range slices.Sorted(maps.Keys(tc.events)) {
					<-time.After(time.Until(start.Add(at)))
					tc.events[at](t, c)
				}
				<-time.After(time.Until(start.Add(30 * time.Minute)))
				for _, name := range slices.Sorted(maps.Keys(c.ends)) {
					c.end(name)
				}
				c.runs.Wait()
				if diff := cmp.Diff(tc.want, c.notes); diff != "" {
					t.Errorf("\n%s\nRun(...): -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestRunInvalid checks that a Leader that cannot take part in an election says so.
func TestRunInvalid(t *testing.T) {
	l := &Leader{timing: DefaultTiming(), lock: &resourcelock.LeaseLock{}}
	if err := l.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "cannot set up leader election") {
		t.Errorf("Run(...): want an error of the election, got %v", err)
	}
}

// TestNew checks for which Lease a replica contends.
func TestNew(t *testing.T) {
	type want struct {
		lease types.NamespacedName
		err   error
	}
	cases := map[string]struct {
		reason string
		config rest.Config
		want   want
	}{
		"Lease":    {reason: "Replicas contend for the Lease of a name, each with an identity.", want: want{lease: types.NamespacedName{Namespace: "system", Name: leaseName}}},
		"NoClient": {reason: "A config without a valid host makes no client.", config: rest.Config{Host: "http://%"}, want: want{err: cmpopts.AnyError}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			identities := map[string]bool{}
			got := want{}
			for range 2 {
				ran := false
				l, err := New(&tc.config, "system", leaseName, DefaultTiming(), []Duty{func(context.Context) { ran = true }})
				if got.err = err; err != nil {
					continue
				}
				lock := l.lock.(*resourcelock.LeaseLock)
				got.lease = types.NamespacedName{Namespace: lock.LeaseMeta.Namespace, Name: lock.LeaseMeta.Name}
				identities[lock.Identity()] = true
				for _, duty := range l.duties {
					duty(t.Context())
				}
				if !ran {
					t.Errorf("%s\nNew(...): want a Leader with the duty", tc.reason)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
			}
			// A restarted replica, and two of one host, must not take themselves for each other.
			if tc.want.err == nil && len(identities) != 2 {
				t.Errorf("%s\nNew(...): want an identity each, got %v", tc.reason, identities)
			}
		})
	}
}

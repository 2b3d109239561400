// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/clock"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// A fakeClock returns the time that a test sets.
type fakeClock struct{ at time.Time }

func (c *fakeClock) Now() time.Time                  { return c.at }
func (c *fakeClock) Since(t time.Time) time.Duration { return c.at.Sub(t) }

func servicesList(items ...Service) (*list[Service], *int) {
	calls := 0
	return &list[Service]{match: isService, clock: clock.RealClock{}, load: func(context.Context) ([]Service, time.Time, error) {
		calls++
		return items, time.Time{}, nil
	}}, &calls
}

func TestListWrite(t *testing.T) {
	a, b := Service{Name: "svc:a"}, Service{Name: "svc:b"}
	changed := Service{Name: "svc:a", Comment: "changed"}
	cases := map[string]struct {
		reason string
		key    string
		fold   fold[Service]
		err    error
		want   []Service
		calls  int
	}{
		"Replace": {reason: "A written item is in the list without another call.", key: "svc:a", fold: replaced(changed), want: []Service{changed, b}, calls: 1},
		"Add":     {reason: "A new item is added.", key: "svc:c", fold: replaced(Service{Name: "svc:c"}), want: []Service{a, b, {Name: "svc:c"}}, calls: 1},
		"Remove":  {reason: "A deleted item is gone.", key: "svc:a", fold: removed[Service], want: []Service{b}, calls: 1},
		"Edit":    {reason: "A part of an item is changed.", key: "svc:a", fold: edited(func(s *Service) { s.Comment = "changed" }), want: []Service{changed, b}, calls: 1},
		"EditNone": {
			reason: "An edit of an item that is not in the list changes nothing.", key: "svc:c",
			fold: edited(func(s *Service) { s.Comment = "changed" }), want: []Service{a, b}, calls: 1,
		},
		"Refused": {reason: "A refused write changes nothing.", key: "svc:a", err: &Error{Class: ClassForbidden}, want: []Service{a, b}, calls: 1},
		"Lost":    {reason: "A write without a response makes the list invalid.", key: "svc:a", err: &Error{Class: ClassUnavailable}, want: []Service{a, b}, calls: 2},
		"Changed": {reason: "A write that conflicts with a change makes the list invalid.", key: "svc:a", err: &Error{Class: ClassPreconditionFailed}, want: []Service{a, b}, calls: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, calls := servicesList(a, b)
			original, _, err := l.get(t.Context(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			err = l.write(tc.key, func() (fold[Service], error) { return tc.fold, tc.err })
			if diff := cmp.Diff(tc.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nwrite(...): -want, +got:\n%s", tc.reason, diff)
			}
			got, _, err := l.get(t.Context(), time.Minute)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("\n%s\nget(...): -want, +got:\n%s%v", tc.reason, diff, err)
			}
			if *calls != tc.calls {
				t.Errorf("\n%s\nwant %d calls, got %d", tc.reason, tc.calls, *calls)
			}
			// Other callers still read the list that they have.
			if diff := cmp.Diff([]Service{a, b}, original); diff != "" {
				t.Errorf("\n%s\nthe old list changed: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestListWriteDuringLoad(t *testing.T) {
	loading, release := make(chan struct{}), make(chan struct{})
	l := &list[Service]{match: isService, clock: clock.RealClock{}, load: func(context.Context) ([]Service, time.Time, error) {
		close(loading)
		<-release
		// The response was made before the writes.
		return []Service{{Name: "svc:a"}, {Name: "svc:b"}}, time.Time{}, nil
	}}
	got := make(chan []Service)
	go func() {
		s, _, err := l.get(t.Context(), time.Minute)
		if err != nil {
			t.Errorf("get(...): %v", err)
		}
		got <- s
	}()
	<-loading
	for key, f := range map[string]fold[Service]{"svc:a": removed[Service], "svc:c": replaced(Service{Name: "svc:c"})} {
		if err := l.write(key, func() (fold[Service], error) { return f, nil }); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	want := []Service{{Name: "svc:b"}, {Name: "svc:c"}}
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Errorf("the caller that waited: -want, +got:\n%s", diff)
	}
	s, _, err := l.get(t.Context(), time.Minute)
	if diff := cmp.Diff(want, s); diff != "" || err != nil {
		t.Errorf("the cached list: -want, +got:\n%s%v", diff, err)
	}
}

func TestListOverlappingWrites(t *testing.T) {
	l, calls := servicesList(Service{Name: "svc:a"})
	if _, _, err := l.get(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	// The order of the two writes is unknown.
	err := l.write("svc:a", func() (fold[Service], error) {
		return removed[Service], l.write("svc:a", func() (fold[Service], error) { return removed[Service], nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.get(t.Context(), time.Minute); err != nil || *calls != 2 {
		t.Errorf("want the list to be requested again, got %d calls, %v", *calls, err)
	}
}

func TestListTimes(t *testing.T) {
	api := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	fake := &fakeClock{at: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}
	calls := 0
	l := &list[Service]{match: isService, clock: fake, load: func(context.Context) ([]Service, time.Time, error) {
		if calls++; calls == 1 {
			return nil, api, nil
		}
		return nil, time.Time{}, nil
	}}
	_, at, err := l.get(t.Context(), time.Minute)
	if err != nil || !at.Equal(api) {
		t.Errorf("get(...): want the API's time %s, got %s, %v", api, at, err)
	}
	fake.at = fake.at.Add(time.Minute)
	if _, at, err = l.get(t.Context(), time.Minute); err != nil || !at.Equal(api) || calls != 1 {
		t.Errorf("get(...) within the age: want the same list, got %s, %d calls, %v", at, calls, err)
	}
	fake.at = fake.at.Add(time.Second)
	if _, at, err = l.get(t.Context(), time.Minute); err != nil || !at.Equal(fake.at) || calls != 2 {
		t.Errorf("get(...) without the API's time: want the local time, got %s, %d calls, %v", at, calls, err)
	}
}

func TestListCancelled(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	l := &list[Service]{match: isService, clock: clock.RealClock{}, load: func(context.Context) ([]Service, time.Time, error) {
		<-release
		return nil, time.Time{}, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var e *Error
	if _, _, err := l.get(ctx, time.Minute); !errors.As(err, &e) {
		t.Errorf("get(...) with a cancelled context: want an error of the API's kind, got %v", err)
	}
}

func TestDevicesAt(t *testing.T) {
	sim := simtest.StartAPI(t)
	skewed := &fakeClock{at: time.Now().Add(-time.Hour)}
	c, err := NewClient(Config{URL: sim.URL, ClientID: simtest.ClientID, ClientSecret: simtest.ClientSecret},
		Options{Rate: 1000, Burst: 1000, ListMaxAge: time.Minute, Metrics: NewMetrics(), Clock: skewed})
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]func() (time.Time, error){
		"DevicesAt":  func() (time.Time, error) { _, at, err := c.Devices().DevicesAt(t.Context(), 0); return at, err },
		"ServicesAt": func() (time.Time, error) { _, at, err := c.Services().ServicesAt(t.Context(), 0); return at, err },
	} {
		// The simulator's Date is the real clock of this machine.
		if got, err := at(); err != nil || time.Since(got).Abs() > time.Minute {
			t.Errorf("%s(...): want the API's time, not the local time, got %s, %v", name, got, err)
		}
	}
}

func TestLostWriteExpiresList(t *testing.T) {
	sim := simtest.StartAPI(t)
	c := newClient(t, sim, nil)
	if _, err := c.Services().Services(t.Context(), Cached); err != nil {
		t.Fatal(err)
	}
	if err := sim.SetFaults(tailnetsim.Fault{Method: "PUT", Path: "vip-services", Count: 1, DropReply: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Services().PutService(t.Context(), Service{Name: "svc:web", Ports: []string{"tcp:80"}}); err == nil {
		t.Fatal("PutService(...): want an error of a lost reply")
	}
	got, err := c.Services().Services(t.Context(), Cached)
	if err != nil || len(got) != 1 {
		t.Errorf("Services(...): want the service whose reply was lost, got %v, %v", got, err)
	}
}

// TestListJoin verifies which callers share a call in progress.
func TestListJoin(t *testing.T) {
	cases := map[string]struct {
		reason string
		ago    time.Duration // How long ago the call began.
		maxAge time.Duration
		expire bool
		want   string
		calls  int32
	}{
		"Young":   {reason: "A call that is no older than the maximum age is shared.", ago: time.Second, maxAge: time.Minute, want: "svc:old", calls: 1},
		"Fresh":   {reason: "A caller that requests the current list does not get the result of a call that began earlier.", ago: time.Second, maxAge: time.Nanosecond, want: "svc:new", calls: 2},
		"Expired": {reason: "A call that began before the list became invalid is not shared.", ago: time.Second, maxAge: time.Minute, expire: true, want: "svc:new", calls: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fake := &fakeClock{at: time.Now()}
			began, answer := make(chan struct{}), make(chan struct{})
			var calls atomic.Int32
			l := &list[Service]{match: isService, clock: fake, load: func(context.Context) ([]Service, time.Time, error) {
				if calls.Add(1) > 1 {
					return []Service{{Name: "svc:new"}}, time.Time{}, nil
				}
				close(began)
				<-answer
				return []Service{{Name: "svc:old"}}, time.Time{}, nil
			}}
			first := make(chan error, 1)
			go func() {
				_, _, err := l.get(t.Context(), time.Minute)
				first <- err
			}()
			<-began
			fake.at = fake.at.Add(tc.ago)
			if tc.expire {
				l.expire()
			}
			type result struct {
				items []Service
				err   error
			}
			second := make(chan result, 1)
			ask := func() {
				s, _, err := l.get(t.Context(), tc.maxAge)
				second <- result{s, err}
			}
			if tc.calls == 1 {
				go ask()
				close(answer)
			} else {
				// The new call does not wait for the older one.
				ask()
				close(answer)
			}
			if err := <-first; err != nil {
				t.Fatal(err)
			}
			got := <-second
			if diff := cmp.Diff([]Service{{Name: tc.want}}, got.items); diff != "" || got.err != nil {
				t.Errorf("\n%s\nget(...): -want, +got:\n%s%v", tc.reason, diff, got.err)
			}
			// The response of the older call arrives last.
			s, _, err := l.get(t.Context(), time.Minute)
			if diff := cmp.Diff([]Service{{Name: tc.want}}, s); diff != "" || err != nil || calls.Load() != tc.calls {
				t.Errorf("\n%s\nthe cached list, after %d calls: -want, +got:\n%s%v", tc.reason, calls.Load(), diff, err)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

func TestSplitMoves(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	m := &Events{}
	m.add(moveEvent(at(15), at(15.1)))
	cases := map[string]struct {
		reason       string
		began, ended float64
		want         bool
	}{
		"UnderWay":  {reason: "The request was in flight when the addresses moved.", began: 14.9, ended: 15.05, want: true},
		"Hangs":     {reason: "A request without a response was in flight, too.", began: 14.9, ended: 24.9, want: true},
		"NotHeard":  {reason: "The client may learn of the move later.", began: 16, ended: 16.2, want: true},
		"Before":    {reason: "A request that had ended was lost for another reason.", began: 14, ended: 14.5},
		"BlackHole": {reason: "A request that was without a response for long before was lost for another reason.", began: 8, ended: 18},
		"After":     {reason: "Later requests go to the other host.", began: 20, ended: 30},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, cut := m.Split([]Failure{{Began: at(tc.began), Ended: at(tc.ended)}}); (len(cut) > 0) != tc.want {
				t.Errorf("\n%s\nSplit(...): want it cut: %t, got %v", tc.reason, tc.want, cut)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	spanOf := func(from, to int) Span { return Span{Began: at(from), Ended: at(to)} }
	e := &Events{}
	e.Add(spanOf(10, 20))
	e.Add(Span{Began: at(50)})
	var all []Failure
	for _, s := range []Span{spanOf(1, 5), spanOf(9, 11), spanOf(12, 30), spanOf(21, 22), spanOf(60, 61)} {
		all = append(all, Failure{Began: s.Began, Ended: s.Ended})
	}
	lost, cut := e.Split(all)
	if diff := cmp.Diff([]Failure{all[0], all[3]}, lost); diff != "" {
		t.Errorf("Split(...): lost: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]Failure{all[1], all[2], all[4]}, cut); diff != "" {
		t.Errorf("Split(...): cut: -want, +got:\n%s", diff)
	}
}

func TestDuring(t *testing.T) {
	boom := errors.New("boom")
	e := &Events{}
	f := Failure{Began: time.Now()}
	err := e.During(func() error {
		f.Ended = time.Now()
		return boom
	})
	if !errors.Is(err, boom) || e.Count() != 1 {
		t.Errorf("During(...): want the function's error and one event, got %v and %d", err, e.Count())
	}
	later := Failure{Began: time.Now(), Ended: time.Now()}
	if lost, _ := e.Split([]Failure{f, later}); len(lost) != 1 || lost[0] != later {
		t.Errorf("Split(...): want the later request lost, got %v", lost)
	}
}

func TestWatchMoves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hosts := []string{"", "one", "one", "", "two", "two"}
	boom := errors.New("boom")
	m := &Events{}
	m.WatchMoves(ctx, func(context.Context) (string, error) {
		if len(hosts) == 0 {
			cancel()
			return "", nil
		}
		host := hosts[0]
		hosts = hosts[1:]
		if len(hosts) == 0 {
			return "", boom
		}
		return host, nil
	})
	if got := m.Count(); got != 1 {
		t.Errorf("WatchMoves(...): want one move, got %d", got)
	}
	if !errors.Is(m.Err(), boom) {
		t.Errorf("WatchMoves(...): want the error of the last read, got %v", m.Err())
	}
}

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

func TestMovesDuring(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	m := &Moves{}
	m.add(span{from: at(15), to: at(15.1)})
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
			if got := m.during(Failure{Began: at(tc.began), Ended: at(tc.ended)}); got != tc.want {
				t.Errorf("\n%s\nduring(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestMovesSplit(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1000+int64(s), 0) }
	m := &Moves{}
	m.add(span{from: at(15), to: at(16)})
	during, later := Failure{Began: at(15), Ended: at(25)}, Failure{Began: at(40), Ended: at(41)}
	lost, moved := m.Split([]Failure{during, later})
	if diff := cmp.Diff([]Failure{later}, lost); diff != "" {
		t.Errorf("Split(...): lost: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]Failure{during}, moved); diff != "" {
		t.Errorf("Split(...): moved: -want, +got:\n%s", diff)
	}
}

func TestMovesWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hosts := []string{"", "one", "one", "", "two", "two"}
	boom := errors.New("boom")
	m := &Moves{}
	m.Watch(ctx, func(context.Context) (string, error) {
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
		t.Errorf("Watch(...): want one move, got %d", got)
	}
	if !errors.Is(m.Err(), boom) {
		t.Errorf("Watch(...): want the error of the last read, got %v", m.Err())
	}
}

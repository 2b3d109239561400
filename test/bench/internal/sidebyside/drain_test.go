// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"testing"
	"time"
)

func TestMovesDuring(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	m := &moves{}
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

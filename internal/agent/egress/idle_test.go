// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// TestCutIdle checks that a connection is cut once it has carried nothing for its idle time, and stays
// open while bytes go in either direction.
func TestCutIdle(t *testing.T) {
	const idle = time.Minute
	synctest.Test(t, func(t *testing.T) {
		var received, acked atomic.Uint64
		carried := func() (transferred, error) {
			return transferred{received: received.Load(), acked: acked.Load()}, nil
		}
		cut, done := false, make(chan struct{})
		go func() {
			defer close(done)
			cutIdle(t.Context(), carried, idle, func() { cut = true })
		}()
		// Between two looks of cutIdle.
		time.Sleep(time.Second)
		for range looks {
			for _, count := range []*atomic.Uint64{&received, &acked} {
				time.Sleep(idle - idle/looks)
				synctest.Wait()
				if cut {
					t.Fatal("the connection was cut while it was used")
				}
				count.Add(1)
			}
		}
		start := time.Now()
		<-done
		if took := time.Since(start); !cut || took < idle || took > idle+idle/looks {
			t.Errorf("want an idle connection to be cut after %s, got %t after %s", idle, cut, took)
		}
	})
}

// TestCutIdleEnds checks that nothing is cut after a connection was closed.
func TestCutIdleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cutIdle(t.Context(), func() (transferred, error) { return transferred{}, errors.New("closed") }, time.Minute, func() { t.Error("cut") })
	})
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
)

// reap reaps dead children until ctx ends.
func reap(ctx context.Context) {
	t := time.NewTicker(2 * time.Second)
	defer t.Stop()
	var dead []int
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			dead = reapOnce(dead)
		}
	}
}

// reapOnce reaps the children that were already dead at the last call, and returns those that
// are dead now. Callers that wait for a child have received its status by then; only orphans
// remain.
func reapOnce(previous []int) []int {
	seen := map[int]bool{}
	for _, pid := range previous {
		seen[pid] = true
	}
	var current []int
	for _, pid := range host.DeadChildren(os.Getpid()) {
		if !seen[pid] {
			current = append(current, pid)
			continue
		}
		// It fails if the child has already been reaped.
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	return current
}

// finish kills and reaps the processes that remain after the components have stopped.
func finish(ctx context.Context) error {
	if err := host.KillAll(ctx); err != nil {
		return err
	}
	dead := reapOnce(nil)
	for range 3 {
		dead = reapOnce(dead)
	}
	return nil
}

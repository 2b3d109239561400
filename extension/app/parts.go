// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A part is a task that runs while the extension does.
type part struct {
	name string

	// uses are the names of the parts that this part uses, which are earlier in the list. It starts when
	// they are ready, and ends before they do.
	uses []string

	// ready is closed when the parts that use this part may start. Nil means that they need not wait.
	ready <-chan struct{}

	// run runs the part until its context ends.
	run func(ctx context.Context) error
}

// runParts runs all parts until ctx ends or a part fails. It then ends each part once the parts that use it
// have ended, and returns the first failure.
//
// This is not a controller-runtime Manager, which stops all runnables that are neither caches nor HTTP
// servers at once, and which ends the process when it loses the Lease (sigs.k8s.io/controller-runtime
// pkg/manager/internal.go, engageStopProcedure and initLeaderElector). Here a replica without the Lease
// continues to serve.
func runParts(ctx context.Context, parts []part) error {
	byName := make(map[string]part, len(parts))
	ended := make(map[string]chan struct{}, len(parts))
	users := map[string][]string{}
	for _, p := range parts {
		for _, name := range p.uses {
			if _, ok := byName[name]; !ok {
				return errors.Errorf("part %s needs part %s, which is not before it", p.name, name)
			}
			users[name] = append(users[name], p.name)
		}
		byName[p.name], ended[p.name] = p, make(chan struct{})
	}
	group, stop := errgroup.WithContext(ctx)
	for _, p := range parts {
		running, end := context.WithCancel(context.WithoutCancel(ctx))
		group.Go(func() error {
			<-stop.Done()
			for _, user := range users[p.name] {
				<-ended[user]
			}
			end()
			return nil
		})
		group.Go(func() error {
			defer close(ended[p.name])
			for _, name := range p.uses {
				if ready := byName[name].ready; ready != nil && !waitFor(stop, ready) {
					return nil
				}
			}
			return errors.Wrap(p.run(running), p.name)
		})
	}
	return group.Wait()
}

// waitFor waits until ready is closed. It reports false if ctx ends before.
func waitFor(ctx context.Context, ready <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-ready:
		return true
	}
}

// namesOf returns the names of parts.
func namesOf(parts []part) []string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = p.name
	}
	return out
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A task runs while the extension does.
type task struct {
	name string

	// uses are the names of the tasks that this task uses, which are earlier in the list. It starts when
	// they are ready, and ends before they do.
	uses []string

	// ready is closed when the tasks that use this task may start. Nil means that they need not wait.
	ready <-chan struct{}

	// run runs the task until its context ends.
	run func(ctx context.Context) error
}

// runTasks runs all tasks until ctx ends or a task fails. It then ends each task once the tasks that use it
// have ended, and returns the first failure.
//
// This is not a controller-runtime Manager, which stops all runnables that are neither caches nor HTTP
// servers at once, and which ends the process when it loses the Lease (sigs.k8s.io/controller-runtime
// pkg/manager/internal.go, engageStopProcedure and initLeaderElector). Here a replica without the Lease
// continues to serve.
func runTasks(ctx context.Context, tasks []task) error {
	byName := make(map[string]task, len(tasks))
	ended := make(map[string]chan struct{}, len(tasks))
	users := map[string][]string{}
	for _, t := range tasks {
		for _, name := range t.uses {
			if _, ok := byName[name]; !ok {
				return errors.Errorf("task %s needs task %s, which is not before it", t.name, name)
			}
			users[name] = append(users[name], t.name)
		}
		byName[t.name], ended[t.name] = t, make(chan struct{})
	}
	group, stop := errgroup.WithContext(ctx)
	for _, t := range tasks {
		running, end := context.WithCancel(context.WithoutCancel(ctx))
		group.Go(func() error {
			<-stop.Done()
			for _, user := range users[t.name] {
				<-ended[user]
			}
			end()
			return nil
		})
		group.Go(func() error {
			defer close(ended[t.name])
			for _, name := range t.uses {
				if ready := byName[name].ready; ready != nil && !waitFor(stop, ready) {
					return nil
				}
			}
			return errors.Wrap(t.run(running), t.name)
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

// namesOf returns the names of tasks.
func namesOf(tasks []task) []string {
	out := make([]string, len(tasks))
	for i, t := range tasks {
		out[i] = t.name
	}
	return out
}

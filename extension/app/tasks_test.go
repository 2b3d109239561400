// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// TestRunTasks runs tasks that note when they begin and end. Those that others use take the longest to end
// if nothing makes them wait.
func TestRunTasks(t *testing.T) {
	errBroken := errors.New("broken")
	type spec struct {
		name string
		uses []string

		// ready is the time until the tasks that use it may start. Negative means never.
		ready time.Duration

		// fails makes the task fail after a second. drain is the time that it takes to end.
		fails bool
		drain time.Duration
	}
	type want struct {
		notes []string
		err   error
	}
	cases := map[string]struct {
		reason string
		specs  []spec
		want   want
	}{
		"Order": {
			reason: "A task starts when the tasks that it uses are ready, and ends before they do.",
			specs:  []spec{{name: "index", ready: time.Second}, {name: "server", uses: []string{"index"}, drain: time.Minute}},
			want:   want{notes: []string{"index begins", "server begins", "server ends", "index ends"}},
		},
		"Chain": {
			reason: "Each task waits for the tasks that use it, and these for others.",
			specs:  []spec{{name: "a"}, {name: "b", uses: []string{"a"}, ready: time.Second}, {name: "c", uses: []string{"b"}, drain: time.Minute}},
			want:   want{notes: []string{"a begins", "b begins", "c begins", "c ends", "b ends", "a ends"}},
		},
		"NeverReady": {
			reason: "A task whose conditions never hold does not start, and does not delay the end.",
			specs:  []spec{{name: "index", ready: -1}, {name: "server", uses: []string{"index"}}},
			want:   want{notes: []string{"index begins", "index ends"}},
		},
		"Failure": {
			reason: "A failed task ends all, in order, and its error is returned.",
			specs:  []spec{{name: "index"}, {name: "probes", fails: true}, {name: "server", uses: []string{"index", "probes"}, ready: time.Second, drain: time.Minute}},
			want:   want{notes: []string{"index begins", "probes begins", "server begins", "probes fails", "server ends", "index ends"}, err: errBroken},
		},
		"Order of the list": {
			reason: "A task that needs a later task could make a cycle.",
			specs:  []spec{{name: "server", uses: []string{"index"}}, {name: "index"}},
			want:   want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				note := func(s string) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, s)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var tasks []task
				for i, s := range tc.specs {
					p := task{name: s.name, uses: s.uses}
					if s.ready != 0 {
						ready := make(chan struct{})
						p.ready = ready
						if s.ready > 0 {
							time.AfterFunc(s.ready, func() { close(ready) })
						}
					}
					p.run = func(ctx context.Context) error {
						// Tasks without an order begin in that of the list.
						<-time.After(time.Duration(i) * time.Millisecond)
						note(s.name + " begins")
						if s.fails {
							<-time.After(time.Second)
							note(s.name + " fails")
							return errBroken
						}
						<-ctx.Done()
						<-time.After(s.drain)
						note(s.name + " ends")
						return nil
					}
					tasks = append(tasks, p)
				}
				err := runTasks(ctx, tasks)
				if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("\n%s\nrunTasks(...): -want error, +got error:\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.want.notes, got); diff != "" {
					t.Errorf("\n%s\nrunTasks(...): -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

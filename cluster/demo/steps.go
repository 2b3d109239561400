// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A step is one thing to do. It says what it waits for through its progress.
type step struct {
	name   string
	action func(ctx context.Context, p *progress) error
}

// run does the steps in turn, and prints each with the time it took.
func run(ctx context.Context, out io.Writer, steps []step) error {
	began := time.Now()
	for i, s := range steps {
		p := &progress{out: out, began: time.Now()}
		p.printf("[%d/%d] %s\n", i+1, len(steps), s.name)
		if err := s.action(ctx, p); err != nil {
			return errors.Wrapf(err, "cannot %s", s.name)
		}
		p.printf("      done in %s (%s in all)\n", since(p.began), since(began))
	}
	return nil
}

// progress prints what a step waits for.
type progress struct {
	out   io.Writer
	began time.Time
	last  string
	shown time.Time
}

func (p *progress) printf(format string, a ...any) {
	// Losing a line of progress is no reason to stop.
	_, _ = fmt.Fprintf(p.out, format, a...)
}

// Every change is shown at once, and a standstill each half minute.
const repeatAfter = 30 * time.Second

func (p *progress) waiting(description string) {
	if description == p.last && time.Since(p.shown) < repeatAfter {
		return
	}
	p.last, p.shown = description, time.Now()
	p.printf("      %6s  waiting: %s\n", since(p.began), description)
}

// until runs check each second until it returns nothing. check returns what is missing. When
// time runs out, the last result is the error.
func (p *progress) until(ctx context.Context, timeout time.Duration, check func(context.Context) (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		missing, err := check(ctx)
		if err != nil {
			missing = err.Error()
		}
		if missing == "" {
			return nil
		}
		p.waiting(missing)
		select {
		case <-ctx.Done():
			return errors.Errorf("gave up after %s: %s", since(p.began), missing)
		case <-tick.C:
		}
	}
}

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }

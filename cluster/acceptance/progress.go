// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// repeatAfter is the interval in which a long wait is printed.
const repeatAfter = 10 * time.Second

// progress prints which row runs, and its waits.
type progress struct {
	out io.Writer

	mu   sync.Mutex
	last time.Time
}

func (p *progress) printf(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	say(p.out, format, a...)
}

// waiting prints a wait, unless another line was printed recently.
func (p *progress) waiting(took time.Duration, description string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.last) < repeatAfter {
		return
	}
	p.last = time.Now()
	say(p.out, "          %4.0fs waiting: %s\n", took.Seconds(), description)
}

func (p *progress) began(i, n int, r row) {
	p.printf("[%2d/%d] %-34s ", i, n, r.id())
}

func (p *progress) ended(r *result) {
	p.printf("%s %5.1fs", r.Outcome, r.Took)
	if r.Reason != "" {
		p.printf("  %s", r.Reason)
	}
	p.printf("\n")
	for _, n := range r.Notes {
		p.printf("          %s\n", n)
	}
	for _, k := range sortedKeys(r.Seconds) {
		p.printf("          %s: %s\n", k, fmt.Sprintf("%.1f s", r.Seconds[k]))
	}
}

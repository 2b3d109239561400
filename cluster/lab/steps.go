// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
)

// progressInterval is how often running steps are printed if the output is not a terminal.
const progressInterval = 15 * time.Second

// A stepPrinter prints steps when they end, and below them the running steps.
type stepPrinter struct {
	out      io.Writer
	terminal bool
	printed  map[string]bool
	last     time.Time
}

func newStepPrinter(out io.Writer, terminal bool) *stepPrinter {
	return &stepPrinter{out: out, terminal: terminal, printed: map[string]bool{}, last: time.Now()}
}

func (p *stepPrinter) print(steps []daemon.Step) {
	if p.terminal {
		fmt.Fprint(p.out, "\r\033[K")
	}
	for _, s := range steps {
		if p.printed[s.Name] || (s.State != daemon.StateDone && s.State != daemon.StateFailed) {
			continue
		}
		p.printed[s.Name] = true
		p.last = time.Now()
		if s.State == daemon.StateFailed {
			fmt.Fprintf(p.out, "  FAILED %s after %s: %s\n", s.Name, seconds(s.Took), s.Detail)
			continue
		}
		fmt.Fprintf(p.out, "  %s ... %s\n", s.Name, seconds(s.Took))
	}
	w := waitingFor(steps)
	switch {
	case w == "":
	case p.terminal:
		if len(w) > 110 {
			w = w[:110] + "..."
		}
		fmt.Fprint(p.out, "  waiting: "+w)
	case time.Since(p.last) > progressInterval:
		p.last = time.Now()
		fmt.Fprintf(p.out, "  waiting: %s\n", w)
	}
}

// waitingFor returns the running steps, with their durations and last messages.
func waitingFor(steps []daemon.Step) string {
	var out []string
	for _, s := range steps {
		if s.State != daemon.StateRunning {
			continue
		}
		w := fmt.Sprintf("%s (%s)", s.Name, seconds(time.Since(s.Started)))
		if s.Detail != "" {
			w += ": " + s.Detail
		}
		out = append(out, w)
	}
	return strings.Join(out, "; ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

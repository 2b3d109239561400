// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command stages runs targets of the Makefile in turn, also after one that fails, and ends with a
// table of their results and times. It fails if a target fails.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

type cli struct {
	Make    string   `default:"make" help:"Program that runs a target." name:"make"`
	Targets []string `arg:"" help:"Targets to run, in this order." name:"targets"`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("stages"), kong.Description("Run targets of the Makefile in turn, also after one that fails, and show a table of their results and times."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.FatalIfErrorf(c.run(ctx, os.Stdout, os.Stderr))
}

// A stage is the result of a target.
type stage struct {
	target string
	took   time.Duration
	err    error
	// skipped is set for a target that did not run, because of an interrupt.
	skipped bool
}

// run runs all targets. It skips the remaining ones after an interrupt, when ctx ends.
func (c *cli) run(ctx context.Context, stdout, stderr io.Writer) error {
	stages := make([]stage, 0, len(c.Targets))
	failed := 0
	for _, t := range c.Targets {
		s := stage{target: t, skipped: ctx.Err() != nil}
		if !s.skipped {
			start := time.Now()
			s.err = c.target(ctx, t, stdout, stderr)
			s.took = time.Since(start)
		}
		if s.skipped || s.err != nil {
			failed++
		}
		stages = append(stages, s)
	}
	if _, err := io.WriteString(stdout, table(stages)); err != nil {
		return errors.Wrap(err, "cannot write table")
	}
	if failed > 0 {
		return errors.Errorf("%d of %d stages did not pass", failed, len(stages))
	}
	return nil
}

// target runs one target. An interrupt reaches the target as SIGTERM, so that it can clean up.
func (c *cli) target(ctx context.Context, name string, stdout, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, c.Make, "--no-print-directory", name)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd.Run()
}

// table returns one line for each stage, and their sum.
func table(stages []stage) string {
	b := &strings.Builder{}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nSTAGE\tRESULT\tTIME")
	var sum time.Duration
	for _, s := range stages {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.target, s.result(), s.took.Round(time.Second))
		sum += s.took
	}
	fmt.Fprintf(w, "total\t\t%s\n", sum.Round(time.Second))
	// A strings.Builder takes all writes.
	_ = w.Flush()
	return b.String()
}

func (s stage) result() string {
	switch {
	case s.skipped:
		return "skipped"
	case s.err != nil:
		return "FAILED"
	default:
		return "passed"
	}
}

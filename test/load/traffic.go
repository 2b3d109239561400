// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"syscall"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Report is the output of lab load. Durations are in seconds.
type Report struct {
	Requests int       `json:"requests"`
	Failed   int       `json:"failed"`
	Seconds  float64   `json:"seconds"`
	P50      float64   `json:"p50"`
	P99      float64   `json:"p99"`
	Gap      float64   `json:"gap"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Errors   []string  `json:"errors"`
	Failures []Failure `json:"failures"`
}

// A Failure is a request without a response.
type Failure struct {
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	Error string    `json:"error"`
}

// A Traffic is a load in the background.
type Traffic struct {
	cmd    *exec.Cmd
	out    bytes.Buffer
	stderr output
}

// An output collects the output of a program, and signals its beginning.
type output struct {
	buffer bytes.Buffer
	begun  chan struct{}
}

func (s *output) Write(p []byte) (int, error) {
	if s.buffer.Len() == 0 {
		close(s.begun)
	}
	return s.buffer.Write(p)
}

// Start starts a load with the binary of the lab. The arguments are those of lab load.
func Start(ctx context.Context, lab string, args ...string) (*Traffic, error) {
	t := &Traffic{
		cmd:    exec.CommandContext(ctx, lab, append([]string{"load"}, args...)...),
		stderr: output{begun: make(chan struct{})},
	}
	t.cmd.Stdout, t.cmd.Stderr = &t.out, &t.stderr
	return t, errors.Wrap(t.cmd.Start(), "cannot start lab load")
}

// Begun is closed when the load writes its first line to stderr, which it does with --gone.
func (t *Traffic) Begun() <-chan struct{} { return t.stderr.begun }

// Stop ends the load.
func (t *Traffic) Stop() error {
	return errors.Wrap(t.cmd.Process.Signal(syscall.SIGINT), "cannot stop lab load")
}

// Wait waits for the report.
func (t *Traffic) Wait() (Report, error) {
	r := Report{}
	if err := t.cmd.Wait(); err != nil {
		return r, errors.Wrapf(err, "lab load failed: %s%s", t.stderr.buffer.String(), t.out.String())
	}
	return r, errors.Wrap(json.Unmarshal(t.out.Bytes(), &r), "cannot decode the report of lab load")
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"syscall"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Process is a load that the lab sends, with the clients of its tailnets and clusters.
type Process struct {
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

// StartProcess starts a load with the binary of the lab. The arguments are those of lab load.
func StartProcess(ctx context.Context, lab string, args ...string) (*Process, error) {
	return StartClusterProcess(ctx, lab, "", args...)
}

// StartClusterProcess starts a load with a client in a cluster of the lab. Empty means the first one.
func StartClusterProcess(ctx context.Context, lab, cluster string, args ...string) (*Process, error) {
	command := []string{"load"}
	if cluster != "" {
		command = []string{"--cluster=" + cluster, "load"}
	}
	p := &Process{
		cmd:    exec.CommandContext(ctx, lab, append(command, args...)...),
		stderr: output{begun: make(chan struct{})},
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.stderr
	return p, errors.Wrap(p.cmd.Start(), "cannot start lab load")
}

// Begun is closed when the load writes its first line to stderr, which it does with --gone.
func (p *Process) Begun() <-chan struct{} { return p.stderr.begun }

// Stop ends the load.
func (p *Process) Stop() error {
	return errors.Wrap(p.cmd.Process.Signal(syscall.SIGINT), "cannot stop lab load")
}

// Wait waits for the report.
func (p *Process) Wait() (Report, error) {
	r := Report{}
	if err := p.cmd.Wait(); err != nil {
		return r, errors.Wrapf(err, "lab load failed: %s%s", p.stderr.buffer.String(), p.out.String())
	}
	return r, errors.Wrap(json.Unmarshal(p.out.Bytes(), &r), "cannot decode the report of lab load")
}

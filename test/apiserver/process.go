// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/retry"
)

// Root returns the folder of the module, which is the working directory or one of its parents.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", errors.Wrap(err, "cannot get working directory")
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "package", "provider", "crds")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("cannot find package/provider/crds: run this within the module")
		}
		dir = up
	}
}

// Program returns the path of a program: the value of the environment variable, or the lab's
// program, which is built if necessary.
func Program(ctx context.Context, root, name, env string) (string, error) {
	if path := os.Getenv(env); path != "" {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./cluster/lab", "bin", name)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", errors.Wrapf(err, "cannot find %s: set %s to its path", name, env)
	}
	return strings.TrimSpace(string(out)), nil
}

// ProcessOptions configure a process.
type ProcessOptions struct {
	// Env is added to this process's environment, as KEY=value.
	Env []string
	// Dir is the working directory, by default that of this process.
	Dir string
	// Log receives the output of the process. It is discarded by default.
	Log io.Writer
	// Enter is called on the thread that then starts the process and does nothing else. For
	// example, it may enter a network namespace.
	Enter func() error
}

// A Process is a child that ends with this process.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

// StartProcess starts a program in a new process group.
func StartProcess(o ProcessOptions, program string, args ...string) (*Process, error) {
	cmd := exec.Command(program, args...) //nolint:noctx // The process ends with Stop, which gives it time to clean up.
	cmd.Env = append(os.Environ(), o.Env...)
	cmd.Dir = o.Dir
	cmd.Stdout, cmd.Stderr = o.Log, o.Log
	cmd.SysProcAttr = endWithParent()
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel treats the thread that started a process as its parent: keep the thread until
		// the process has ended.
		runtime.LockOSThread()
		err := enter(o)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
		// Not unlocked: Enter may have changed the thread, which ends with the goroutine.
	}()
	if err := <-started; err != nil {
		return nil, errors.Wrapf(err, "cannot start %s", filepath.Base(program))
	}
	return p, nil
}

func enter(o ProcessOptions) error {
	if o.Enter == nil {
		return nil
	}
	return o.Enter()
}

// PID returns the ID of the process.
func (p *Process) PID() int {
	return p.cmd.Process.Pid
}

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} {
	return p.exited
}

// Err returns how the process ended. Call it after Exited is closed.
func (p *Process) Err() error {
	return p.err
}

// Until calls check after each pause until it returns nil. It returns the last error when ctx or the
// process ends.
func (p *Process) Until(ctx context.Context, pause time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-ctx.Done():
		case <-p.exited:
			cancel()
		}
	}()
	err := retry.Until(ctx, pause, check)
	select {
	case <-p.exited:
		if err != nil {
			return errors.Wrap(errors.Join(err, p.err), "the process ended")
		}
	default:
	}
	return err
}

// Stop asks the process to end, and kills its group after the grace period. A killed process is an
// error.
func (p *Process) Stop(grace time.Duration) error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Wrapf(err, "cannot stop %s", filepath.Base(p.cmd.Path))
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(grace):
	}
	return errors.Join(
		errors.Errorf("%s did not stop within %s", filepath.Base(p.cmd.Path), grace),
		p.Kill(),
	)
}

// Kill kills the process and its group.
func (p *Process) Kill() error {
	select {
	case <-p.exited: // Another process may have the ID by now.
		return nil
	default:
	}
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return errors.Wrapf(err, "cannot kill %s", filepath.Base(p.cmd.Path))
	}
	<-p.exited
	return nil
}

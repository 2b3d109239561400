// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/component"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
)

const (
	// backoffMin and backoffMax bound the wait before a process that ended is
	// restarted. If it ran for longer than backoffMax, the wait is backoffMin again.
	backoffMin = 500 * time.Millisecond
	backoffMax = 30 * time.Second
	// grace is how long a process has to end before it is killed.
	grace = 10 * time.Second
)

// A supervised component is kept running until it is stopped.
type supervised struct {
	component.Component

	ns   *netns.Namespace
	logs string

	stop    context.CancelFunc
	stopped chan struct{}

	// mu guards the fields below.
	mu       sync.Mutex
	pid      int
	restarts int
	last     error
}

// supervise starts c and keeps it running until Stop, also when ctx has ended. The
// error is that of the first start.
func supervise(ctx context.Context, c component.Component, ns *netns.Namespace, logs string) (*supervised, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &supervised{Component: c, ns: ns, logs: logs, stop: cancel, stopped: make(chan struct{})}
	cmd, err := s.start(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	go s.keep(ctx, cmd)
	return s, nil
}

// start starts the process once. The end of ctx does not kill it: keep stops it
// gracefully.
func (s *supervised) start(ctx context.Context) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(s.logs, s.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) // Readable on purpose.
	if err != nil {
		return nil, errors.Wrapf(err, "cannot open log of %q", s.Name)
	}
	defer log.Close() // The process has its own copy.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.Command[0], s.Command[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}, s.Env...)
	// If the daemon is killed, the process ends, too: the kernel sends it a signal
	// when the thread that started it ends, which is the namespace's.
	cmd.SysProcAttr = endWithParent()
	if err := s.ns.Do(func() error { return startAt(s.Niceness, cmd) }); err != nil {
		return nil, errors.Wrapf(err, "cannot start %q", s.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid = cmd.Process.Pid
	return cmd, nil
}

// keep waits for the process and restarts it, until ctx ends.
func (s *supervised) keep(ctx context.Context, cmd *exec.Cmd) {
	defer close(s.stopped)
	wait := backoffMin
	for {
		began := time.Now()
		if cmd != nil {
			done := make(chan error, 1)
			go func(c *exec.Cmd) { done <- c.Wait() }(cmd)
			select {
			case err := <-done:
				s.ended(errors.Errorf("ended: %s", describe(err)))
			case <-ctx.Done():
				end(cmd, done)
				s.ended(nil)
				return
			}
		}
		if time.Since(began) > backoffMax {
			wait = backoffMin
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, backoffMax)
		var err error
		cmd, err = s.start(ctx)
		s.mu.Lock()
		s.restarts++
		if err != nil {
			cmd, s.last = nil, err
		}
		s.mu.Unlock()
	}
}

func (s *supervised) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid, s.last = 0, err
}

// end sends SIGTERM to a process, and kills it if it does not end.
func end(cmd *exec.Cmd, done <-chan error) {
	_ = cmd.Process.Signal(syscall.SIGTERM) // Fails if it has already ended.
	select {
	case <-done:
	case <-time.After(grace):
		_ = cmd.Process.Kill() // Fails if it has already ended.
		<-done
	}
}

func describe(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// Stop stops the process and waits until it has ended.
func (s *supervised) Stop() {
	s.stop()
	<-s.stopped
}

// status runs the component's check once.
func (s *supervised) status(ctx context.Context) ComponentStatus {
	err := s.check(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	out := ComponentStatus{Name: s.Name, Program: s.Program, Cluster: s.Cluster, PID: s.pid, Restarts: s.restarts, Healthy: err == nil && s.pid != 0}
	switch {
	case s.pid == 0 && s.last != nil:
		out.Detail = s.last.Error()
	case err != nil:
		out.Detail = err.Error()
	}
	return out
}

// check returns an error if the component is unhealthy.
func (s *supervised) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if s.Ready.Socket != "" {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", s.Ready.Socket)
		if err != nil {
			return errors.Wrap(err, "no answer")
		}
		return c.Close()
	}
	code, body, err := get(ctx, s.Namespace, s.Ready.URL)
	if err != nil {
		return errors.Wrap(err, "no answer")
	}
	if code != http.StatusOK {
		return errors.Errorf("answered %d: %s", code, firstLine(body))
	}
	return nil
}

// get requests a URL from inside a network namespace. It never uses a proxy,
// and trusts any certificate: it only checks health.
func get(ctx context.Context, namespace, rawURL string) (int, string, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return 0, "", errors.Wrapf(err, "cannot parse %q", rawURL)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), "80")
	}
	t := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // See above.
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return netns.Dial(ctx, namespace, network, addr)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rawURL, nil)
	if err != nil {
		return 0, "", errors.Wrapf(err, "cannot make request for %q", rawURL)
	}
	rsp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return 0, "", err
	}
	defer rsp.Body.Close() // Only read.
	b, err := io.ReadAll(io.LimitReader(rsp.Body, 4096))
	return rsp.StatusCode, string(b), err
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// until calls f until it succeeds or limit has passed. The error contains the
// last error of f.
func until(ctx context.Context, limit time.Duration, say func(string), f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			say(err.Error())
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(err, fmt.Sprintf("gave up after %s", limit))
		case <-t.C:
		}
	}
}

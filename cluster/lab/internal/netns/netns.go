// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package netns creates the lab's network namespaces, links and routes, and runs
// functions inside of the namespaces. On the host, it changes only the file system
// below /run/netns.
package netns

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Dir is where named network namespaces are mounted.
const Dir = "/run/netns"

// A Namespace is a named network namespace with an operating system thread that
// stays in it.
type Namespace struct {
	// Name of the file below Dir.
	Name string

	work chan func()
}

// Create creates the namespace, with lo up, and the thread. The thread, and with
// it the processes that were started on it, end with this process.
func Create(name string) (*Namespace, error) {
	n := &Namespace{Name: name, work: make(chan func())}
	ready := make(chan error)
	go func() {
		// Never unlocked: this thread is in another namespace than the others.
		runtime.LockOSThread()
		if err := share(Dir); err != nil {
			ready <- err
			return
		}
		if _, err := netns.NewNamed(name); err != nil {
			ready <- errors.Wrapf(err, "cannot make network namespace %q", name)
			return
		}
		ready <- nil
		for f := range n.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return n, n.Do(loopback)
}

// Do runs f on the namespace's thread and waits for it. Processes that f starts
// are in the namespace and may have a parent death signal, as the thread lives
// as long as this process. f must not wait for anything that takes long.
func (n *Namespace) Do(f func() error) error {
	done := make(chan error)
	n.work <- func() { done <- f() }
	return <-done
}

// within runs f in a named namespace on a thread that is discarded afterwards, so f may block.
// Goroutines that f starts are not in the namespace.
func within(name string, f func() error) error {
	done := make(chan error)
	go func() {
		// Not unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		done <- func() error {
			h, err := os.Open(filepath.Join(Dir, name))
			if err != nil {
				return errors.Wrapf(err, "cannot open network namespace %q", name)
			}
			defer h.Close() // Only read.
			if err := setns(int(h.Fd())); err != nil {
				return errors.Wrapf(err, "cannot enter network namespace %q", name)
			}
			return f()
		}()
	}()
	return <-done
}

// Dial connects to an address, which must be literal, from inside a namespace.
func Dial(ctx context.Context, name, network, addr string) (net.Conn, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, errors.Wrapf(err, "cannot dial %q", addr)
	}
	var c net.Conn
	err := within(name, func() error {
		var err error
		c, err = (&net.Dialer{}).DialContext(ctx, network, addr)
		return err
	})
	return c, err
}

// Listen listens inside a namespace.
func Listen(ctx context.Context, name, network, addr string) (net.Listener, error) {
	var l net.Listener
	err := within(name, func() error {
		var err error
		l, err = (&net.ListenConfig{}).Listen(ctx, network, addr)
		return err
	})
	return l, err
}

// Start starts a command inside a namespace.
func Start(name string, cmd *exec.Cmd) error {
	return within(name, cmd.Start)
}

// Delete removes a named namespace. Deleting a missing namespace succeeds.
func Delete(name string) error {
	path := filepath.Join(Dir, name)
	if err := unix.Unmount(path, detach); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
		return errors.Wrapf(err, "cannot unmount network namespace %q", name)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return errors.Wrapf(err, "cannot remove network namespace %q", name)
	}
	return nil
}

// Inode returns the number that /proc/PID/ns/net shows for processes of a named
// namespace, and false when there is no such namespace.
func Inode(name string) (uint64, bool) {
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(Dir, name), &st); err != nil {
		return 0, false
	}
	return st.Ino, true
}

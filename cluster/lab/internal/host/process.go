// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Process is identified by its number and start time, because numbers are reused.
type Process struct {
	PID int
	// Start is field 22 of /proc/PID/stat, in clock ticks since boot.
	Start string
}

// FindProcess returns the process with that number, and false if there is none.
func FindProcess(pid int) (Process, bool) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Process{}, false
	}
	st := parseStat(string(b))
	return Process{PID: pid, Start: st.start}, st.start != "" && st.state != "Z"
}

// DeadChildren returns the children of a process that wait to be reaped.
func DeadChildren(parent int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // Gone.
		}
		if st := parseStat(string(b)); st.state == "Z" && st.parent == strconv.Itoa(parent) {
			out = append(out, pid)
		}
	}
	return out
}

// A stat has the required fields of /proc/PID/stat.
type stat struct{ state, parent, start string }

// parseStat parses a line of /proc/PID/stat. The command in it may contain blanks and
// parentheses, so the other fields begin after the last parenthesis.
func parseStat(s string) stat {
	i := strings.LastIndex(s, ")")
	if i < 0 {
		return stat{}
	}
	f := strings.Fields(s[i+1:])
	if len(f) < 20 {
		return stat{}
	}
	return stat{state: f[0], parent: f[1], start: f[19]}
}

// Alive reports whether p still runs.
func (p Process) Alive() bool {
	current, ok := FindProcess(p.PID)
	return ok && current.Start == p.Start
}

// Boot identifies the current boot of the machine.
func Boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// WritePIDFile writes the ID of this process to the daemon's PID file.
func (p Paths) WritePIDFile() error {
	me, ok := FindProcess(os.Getpid())
	if !ok {
		return errors.New("cannot find own process")
	}
	body := strings.Join([]string{strconv.Itoa(me.PID), me.Start, Boot()}, " ")
	return errors.Wrap(os.WriteFile(p.PIDFile(), []byte(body), 0o644), "cannot write pid file") // No secret.
}

// Daemon returns the lab's daemon, and false when none runs.
func (p Paths) Daemon() (Process, bool) {
	b, err := os.ReadFile(p.PIDFile())
	if err != nil {
		return Process{}, false
	}
	f := strings.Fields(string(b))
	if len(f) != 3 || f[2] != Boot() {
		return Process{}, false
	}
	pid, err := strconv.Atoi(f[0])
	if err != nil {
		return Process{}, false
	}
	d := Process{PID: pid, Start: f[1]}
	return d, d.Alive()
}

// Stop sends SIGTERM to a process, and kills it if it does not end within grace.
func (p Process) Stop(ctx context.Context, grace time.Duration) error {
	if !p.Alive() {
		return nil
	}
	if err := unix.Kill(p.PID, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return errors.Wrapf(err, "cannot stop process %d", p.PID)
	}
	if waitGone(ctx, []Process{p}, grace) {
		return nil
	}
	if p.Alive() {
		if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return errors.Wrapf(err, "cannot kill process %d", p.PID)
		}
	}
	if !waitGone(ctx, []Process{p}, 10*time.Second) {
		return errors.Errorf("cannot kill process %d: it is still running", p.PID)
	}
	return nil
}

// waitGone waits until none of the processes is alive.
func waitGone(ctx context.Context, ps []Process, limit time.Duration) bool {
	end := time.After(limit)
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		alive := false
		for _, p := range ps {
			alive = alive || p.Alive()
		}
		if !alive {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-end:
			return false
		case <-t.C:
		}
	}
}

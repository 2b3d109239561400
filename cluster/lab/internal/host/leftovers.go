// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

const cgroups = "/sys/fs/cgroup"

// foreignDirs are folders that programs of the lab write, and whose paths cannot be configured.
// Those that did not exist before are removed with the lab.
var foreignDirs = []string{"/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/var/log/pods", "/run/containerd", "/run/xtables.lock", "/run/netns"}

// Sweep kills every process and removes every mount, network namespace, cgroup
// and file of a lab in any state. The daemon must have ended. It keeps the
// registry if keepRegistry is true, and always keeps the cache.
func Sweep(ctx context.Context, p Paths, keepRegistry bool) error {
	if err := KillAll(ctx); err != nil {
		return err
	}
	if err := unmountBelow(p.State, p.Run); err != nil {
		return err
	}
	for _, n := range plan.Namespaces() {
		if err := netns.Delete(n); err != nil {
			return err
		}
		if err := removeCgroups(ctx, n); err != nil {
			return err
		}
	}
	if err := restoreSysctls(p); err != nil {
		return err
	}
	if err := removeForeign(ctx, p); err != nil {
		return err
	}
	if err := os.RemoveAll(p.Run); err != nil {
		return errors.Wrap(err, "cannot remove sockets")
	}
	return removeState(p, keepRegistry)
}

func removeState(p Paths, keepRegistry bool) error {
	if !keepRegistry {
		return errors.Wrap(os.RemoveAll(p.State), "cannot remove the lab's files")
	}
	entries, err := os.ReadDir(p.State)
	if err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "cannot list the lab's files")
	}
	for _, e := range entries {
		path := filepath.Join(p.State, e.Name())
		if path == p.Registry() {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return errors.Wrap(err, "cannot remove the lab's files")
		}
	}
	return nil
}

// processes returns all processes in the lab's network namespaces or cgroups. Pods have
// separate namespaces, but are in the cgroups; the shims of their containers are in the node's
// namespace.
func processes() ([]Process, error) {
	inodes := map[string]bool{}
	pids := map[int]bool{}
	for _, n := range plan.Namespaces() {
		if i, ok := netns.Inode(n); ok {
			inodes["net:["+strconv.FormatUint(i, 10)+"]"] = true
		}
		for _, dir := range cgroupDirs(n) {
			found, err := cgroupPIDs(dir)
			if err != nil {
				return nil, err
			}
			for _, pid := range found {
				pids[pid] = true
			}
		}
	}
	proc, err := os.ReadDir("/proc")
	if err != nil {
		return nil, errors.Wrap(err, "cannot list processes")
	}
	for _, e := range proc {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		link, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns", "net"))
		if err == nil && inodes[link] {
			pids[pid] = true
		}
	}
	out := make([]Process, 0, len(pids))
	for pid := range pids {
		if p, ok := FindProcess(pid); ok && pid != os.Getpid() {
			out = append(out, p)
		}
	}
	return out, nil
}

// KillAll kills every process in the lab's namespaces and cgroups except this one,
// until none remains: a shim may start processes after they were listed.
func KillAll(ctx context.Context) error {
	for range 10 {
		ps, err := processes()
		if err != nil || len(ps) == 0 {
			return err
		}
		for _, p := range ps {
			if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return errors.Wrapf(err, "cannot kill process %d", p.PID)
			}
		}
		waitGone(ctx, ps, 5*time.Second)
	}
	ps, err := processes()
	if err != nil || len(ps) == 0 {
		return err
	}
	return errors.Errorf("cannot kill process %d of the lab", ps[0].PID)
}

// cgroupDirs returns a cgroup's folders in all hierarchies that have it.
func cgroupDirs(name string) []string {
	var out []string
	for _, pattern := range []string{filepath.Join(cgroups, name), filepath.Join(cgroups, "*", name)} {
		found, err := filepath.Glob(pattern)
		if err == nil {
			out = append(out, found...)
		}
	}
	return out
}

// MakeCgroup creates a cgroup in all hierarchies. Each kubelet has a separate one,
// because it removes unknown pods from its cgroup.
func MakeCgroup(name string) error {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		return errors.Wrapf(os.MkdirAll(filepath.Join(cgroups, name), 0o755), "cannot make cgroup %q", name) // Ignored there.
	}
	entries, err := os.ReadDir(cgroups)
	if err != nil {
		return errors.Wrap(err, "cannot list cgroups")
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dir := filepath.Join(cgroups, e.Name(), name)
		if err := os.MkdirAll(dir, 0o755); err != nil { // Ignored there.
			return errors.Wrapf(err, "cannot make cgroup %q", dir)
		}
		if e.Name() != "cpuset" {
			continue
		}
		for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
			b, err := os.ReadFile(filepath.Join(cgroups, e.Name(), f))
			if err != nil {
				return errors.Wrap(err, "cannot read cpuset")
			}
			if err := os.WriteFile(filepath.Join(dir, f), b, 0o644); err != nil { // Not a new file.
				return errors.Wrap(err, "cannot set cpuset")
			}
		}
	}
	return nil
}

func cgroupPIDs(dir string) ([]int, error) {
	var out []int
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if os.IsNotExist(err) {
				return nil // Removed in the meantime.
			}
			return err
		}
		if d.Name() != "cgroup.procs" {
			return nil
		}
		b, err := os.ReadFile(path) //nolint:gosec // A cgroup of the lab.
		if err != nil {
			return nil //nolint:nilerr // Removed in the meantime.
		}
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
				out = append(out, pid)
			}
		}
		return nil
	})
	return out, errors.Wrapf(err, "cannot list processes of cgroup %q", dir)
}

// removeCgroups removes cgroups from the leaves up. The kernel returns EBUSY until
// killed processes are reaped.
func removeCgroups(ctx context.Context, name string) error {
	for _, root := range cgroupDirs(name) {
		var err error
		for range 50 {
			if err = removeTree(root); err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
		if err != nil {
			return errors.Wrapf(err, "cannot remove cgroup %q", root)
		}
	}
	return nil
}

func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	sort.Sort(sort.Reverse(sort.StringSlice(dirs)))
	for _, d := range dirs {
		if err := unix.Rmdir(d); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// unmountBelow unmounts everything at or below the folders, last mounted first.
func unmountBelow(dirs ...string) error {
	points, err := mountsBelow(dirs...)
	if err != nil {
		return err
	}
	for i := len(points) - 1; i >= 0; i-- {
		if err := unix.Unmount(points[i], detach); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return errors.Wrapf(err, "cannot unmount %q", points[i])
		}
	}
	return nil
}

// mountsBelow returns the mount points at or below the folders, in the order of mounting.
func mountsBelow(dirs ...string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, errors.Wrap(err, "cannot list mounts")
	}
	defer f.Close() // Only read.
	var points []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		fields := strings.Fields(sc.Text())
		if len(fields) < 5 {
			continue
		}
		for _, d := range dirs {
			if fields[4] == d || strings.HasPrefix(fields[4], d+"/") {
				points = append(points, fields[4])
			}
		}
	}
	return points, errors.Wrap(sc.Err(), "cannot list mounts")
}

// removeForeign removes files of the lab's programs from foreignDirs: whole folders
// that did not exist before the lab, and only the lab's entries in others.
func removeForeign(ctx context.Context, p Paths) error {
	rec, ok := readRecord(p)
	if !ok {
		return nil
	}
	for _, dir := range foreignDirs {
		if !rec.Existed[dir] && !inUse(ctx, dir) {
			if err := os.RemoveAll(dir); err != nil {
				return errors.Wrapf(err, "cannot remove %q", dir)
			}
		}
	}
	for _, pattern := range []string{"/var/log/containers/*.log", "/var/lib/cni/results/tsgw-*", "/run/containerd/s/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return errors.Wrap(err, "cannot list leftovers")
		}
		for _, f := range files {
			if !ours(ctx, f, p) {
				continue
			}
			if err := os.Remove(f); err != nil && !os.IsNotExist(err) {
				return errors.Wrapf(err, "cannot remove %q", f)
			}
		}
	}
	return nil
}

// inUse reports whether a folder must stay although it did not exist before the lab: another
// containerd was started, or there are other network namespaces. `ip netns add` mounts their
// folder on itself, and a mount point cannot be removed.
func inUse(ctx context.Context, dir string) bool {
	switch dir {
	case "/run/containerd":
		return listens(ctx, filepath.Join(dir, "containerd.sock"))
	case netns.Dir:
		entries, err := os.ReadDir(dir)
		mounts, merr := mountsBelow(dir)
		return err != nil || merr != nil || len(entries)+len(mounts) > 0
	}
	return false
}

func ours(ctx context.Context, f string, p Paths) bool {
	switch {
	case strings.HasPrefix(f, "/var/log/containers/"):
		target, err := os.Readlink(f)
		return err == nil && strings.HasPrefix(target, p.State+"/")
	case strings.HasPrefix(f, "/run/containerd/s/"):
		// The name of a shim's socket is a hash. The lab's shims have ended.
		return !listens(ctx, f)
	}
	return true
}

// listens reports whether a process listens on a socket. It also dials when ctx has
// ended: otherwise a socket in use would be removed.
func listens(ctx context.Context, socket string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.WithoutCancel(ctx), "unix", socket)
	if err != nil {
		return false
	}
	_ = c.Close() // The connection was only a probe.
	return true
}

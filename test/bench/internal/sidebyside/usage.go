// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// clockTick is the unit of processor times in /proc (proc_pid_stat(5)).
const clockTick = 10 * time.Millisecond

// Memory returns the resident memory of all processes of the selected pods, in MiB.
func (l *Lab) Memory(ctx context.Context, selectors ...[2]string) (float64, error) {
	total := 0.0
	err := l.eachProcess(ctx, selectors, func(dir string) error {
		kib, err := memory(dir, "VmRSS")
		total += kib / 1024
		return err
	})
	return total, err
}

// Anonymous returns the largest anonymous memory of a process of a program in the selected pods, in MiB: the
// memory that a node cannot get back by reading a file again.
func (l *Lab) Anonymous(ctx context.Context, program string, selector [2]string) (float64, error) {
	largest := 0.0
	err := l.eachProcess(ctx, [][2]string{selector}, func(dir string) error {
		name, _, err := processor(dir)
		if err != nil || name != program {
			return err
		}
		kib, err := memory(dir, "RssAnon")
		largest = max(largest, kib/1024)
		return err
	})
	if err == nil && largest == 0 {
		err = errors.Errorf("no process of program %q", program)
	}
	return largest, err
}

// Processor returns the processor time of the processes of the selected pods since their start, by
// program. Forwarding in the kernel counts for no process.
func (l *Lab) Processor(ctx context.Context, selectors ...[2]string) (map[string]time.Duration, error) {
	out := map[string]time.Duration{}
	return out, l.eachProcess(ctx, selectors, func(dir string) error {
		program, d, err := processor(dir)
		if program != "" {
			out[program] += d
		}
		return err
	})
}

// eachProcess calls a function with the folder in /proc of each process.
func (l *Lab) eachProcess(ctx context.Context, selectors [][2]string, fn func(dir string) error) error {
	for _, s := range selectors {
		out, err := l.kubectl(ctx, "get", "--namespace="+s[0], "pods", "--selector="+s[1], "-o=jsonpath={.items[*].metadata.uid}")
		if err != nil {
			return err
		}
		uids := strings.Fields(out)
		if len(uids) == 0 {
			return errors.Errorf("no pod in namespace %q matches %q", s[0], s[1])
		}
		dirs, err := processes("/proc", uids)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			if err := fn(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// processes returns the folders of the processes of pods. The path of a container's cgroup contains
// the pod's UID.
func processes(proc string, uids []string) ([]string, error) {
	cgroups, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "cgroup"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot list processes")
	}
	var out []string
	for _, c := range cgroups {
		b, err := read(filepath.Dir(c), "cgroup")
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(uids, func(uid string) bool { return strings.Contains(b, uid) }) {
			out = append(out, filepath.Dir(c))
		}
	}
	return out, nil
}

// read reads a file of a process. The result is empty when the process has ended.
func read(dir, file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return "", nil
	}
	return string(b), errors.Wrap(err, "cannot read a process's file")
}

// memory returns a field of a process's status, such as VmRSS, in KiB. Zero if the process has ended.
func memory(dir, field string) (float64, error) {
	status, err := read(dir, "status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(status) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 64)
			return kib, errors.Wrap(err, "cannot read a process's memory")
		}
	}
	return 0, nil
}

// processor returns the name of a process's program and its processor time. The name is empty when
// the process has ended.
func processor(dir string) (string, time.Duration, error) {
	stat, err := read(dir, "stat")
	if err != nil || stat == "" {
		return "", 0, err
	}
	// The name is in parentheses, and may contain parentheses itself.
	open, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	// The rest begins with the third field; times in user and kernel mode are the 14th and 15th.
	const user, kernel = 14 - 3, 15 - 3
	fields := strings.Fields(stat[end+1:])
	if open < 0 || end < open || len(fields) <= kernel {
		return "", 0, errors.Errorf("cannot parse %q", stat)
	}
	var took time.Duration
	for _, f := range []string{fields[user], fields[kernel]} {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return "", 0, errors.Wrap(err, "cannot read a process's processor time")
		}
		took += clockTick * time.Duration(n)
	}
	return stat[open+1 : end], took, nil
}

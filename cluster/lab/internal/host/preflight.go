// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// minFree is the disk space in bytes below which no lab is started: kubelet
// would evict pods, and a build would fail late.
const minFree = 10 << 30

// A Missing is an unmet requirement of the machine, and its fix.
type Missing struct {
	Problem string
	Fix     string
	// Package is the Debian package that provides it, if there is one.
	Package string
}

// Line returns the problem and its fix in one line.
func (m Missing) Line() string { return m.Problem + ": " + m.Fix }

// needed maps required programs and files to their Debian packages. Names without
// a slash are looked up in PATH.
var needed = map[string]string{
	"containerd":                         "containerd",
	"containerd-shim-runc-v2":            "containerd",
	"runc":                               "runc",
	"iptables":                           "iptables",
	"ip6tables":                          "iptables",
	"ipset":                              "ipset",
	"mount":                              "mount",
	"/usr/lib/cni/bridge":                "containernetworking-plugins",
	"/usr/lib/cni/host-local":            "containernetworking-plugins",
	"/usr/lib/cni/loopback":              "containernetworking-plugins",
	"/usr/lib/cni/portmap":               "containernetworking-plugins",
	"/etc/ssl/certs/ca-certificates.crt": "ca-certificates",
}

// Check returns all unmet requirements of the machine, in a stable order.
func Check(ctx context.Context, p Paths) []Missing {
	var out []Missing
	for dependency, pkg := range needed {
		if !present(dependency) {
			out = append(out, Missing{Problem: dependency + " is missing", Fix: "apt-get install " + pkg + ", or run `lab up --install`", Package: pkg})
		}
	}
	if os.Geteuid() != 0 {
		out = append(out, Missing{Problem: "not root", Fix: "run the lab as root: it makes network namespaces and containers"})
	}
	if _, err := exec.LookPath("go"); err != nil {
		out = append(out, Missing{Problem: "go is missing", Fix: "install the version of Go in go.mod, https://go.dev/dl"})
	}
	if fs, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(fs), "\toverlay\n") {
		if err := exec.CommandContext(ctx, "modprobe", "overlay").Run(); err != nil {
			out = append(out, Missing{Problem: "the kernel has no overlay file system", Fix: "modprobe overlay, or use a kernel that has it"})
		}
	}
	if _, err := os.Stat("/sys/fs/cgroup"); err != nil {
		out = append(out, Missing{Problem: "no cgroups at /sys/fs/cgroup", Fix: "mount cgroup v1 or v2"})
	}
	if free, err := freeBytes(p.State); err == nil && free < minFree {
		out = append(out, Missing{Problem: fmt.Sprintf("only %d GiB free at %s", free>>30, p.State), Fix: fmt.Sprintf("free %d GiB, or set TSGW_LAB_DIR to a larger disk", int64(minFree)>>30)})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Problem < out[j].Problem })
	return out
}

// CheckIPv6 returns an error if the kernel has no IPv6, which most labs do not need.
func CheckIPv6() error {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return errors.Wrap(err, "cannot use IPv6: boot without ipv6.disable=1, or use a kernel that has it")
}

func present(dependency string) bool {
	if strings.HasPrefix(dependency, "/") {
		_, err := os.Stat(dependency)
		return err == nil
	}
	if _, err := exec.LookPath(dependency); err == nil {
		return true
	}
	// Root's PATH may lack folders in which Debian installs programs.
	for _, d := range []string{"/usr/sbin", "/sbin"} {
		if _, err := os.Stat(filepath.Join(d, dependency)); err == nil {
			return true
		}
	}
	return false
}

// freeBytes returns the free space of the disk that holds path or its nearest existing parent.
func freeBytes(path string) (int64, error) {
	for d := path; ; d = filepath.Dir(d) {
		var st unix.Statfs_t
		err := unix.Statfs(d, &st)
		if err == nil {
			return int64(st.Bavail * uint64(st.Bsize)), nil
		}
		if !errors.Is(err, unix.ENOENT) || d == filepath.Dir(d) {
			return 0, errors.Wrapf(err, "cannot get free space of %q", d)
		}
	}
}

// policyRCD prevents apt from starting the services of new packages. See
// invoke-rc.d(8): 101 means that the action is forbidden.
const (
	policyRCD     = "/usr/sbin/policy-rc.d"
	policyRCDBody = "#!/bin/sh\n# Made by the lab of Tailscale Gateway while it installs packages.\nexit 101\n"
)

// Install installs the missing Debian packages, without starting their services: the lab has a
// separate containerd.
func Install(ctx context.Context, missing []Missing, w io.Writer) error {
	seen := map[string]bool{}
	pkgs := []string{}
	for _, m := range missing {
		if m.Package != "" && !seen[m.Package] {
			seen[m.Package] = true
			pkgs = append(pkgs, m.Package)
		}
	}
	if len(pkgs) == 0 {
		return nil
	}
	sort.Strings(pkgs)
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.Errorf("cannot install %s: this is not Debian, install them manually", strings.Join(pkgs, ", "))
	}
	if _, err := os.Stat(policyRCD); os.IsNotExist(err) {
		if err := os.WriteFile(policyRCD, []byte(policyRCDBody), 0o755); err != nil { // Must be executable.
			return errors.Wrap(err, "cannot prevent apt from starting services")
		}
		defer os.Remove(policyRCD) // Only errors of the installation matter.
	}
	for _, args := range [][]string{{"update", "-q"}, append([]string{"install", "-q", "-y", "--no-install-recommends"}, pkgs...)} {
		fmt.Fprintf(w, "apt-get %s\n", strings.Join(args, " "))
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return errors.Errorf("cannot run apt-get %s: %v: %s", args[0], err, lastLines(string(out), 5))
		}
	}
	return nil
}

func lastLines(s string, n int) string {
	var lines []string
	for sc := bufio.NewScanner(strings.NewReader(s)); sc.Scan(); {
		lines = append(lines, sc.Text())
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "; ")
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package network prepares a pod's network namespace for Kernel networking, before tailscaled
// runs: it enables packet forwarding in the kernel, and guards packets on their way into the
// tailnet. Containerboot sets up the rules that forward packets.
package network

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// ProcSys is the directory of the kernel's settings.
const ProcSys = "/proc/sys"

// Settings that enable packet forwarding.
const (
	settingIPv4 = "net/ipv4/ip_forward"
	settingIPv6 = "net/ipv6/conf/all/forwarding"
)

// ErrIPv6 reports that only IPv4 packets are forwarded.
var ErrIPv6 = errors.New("cannot have the kernel forward IPv6")

// EnableForwarding enables packet forwarding in the kernel. root is ProcSys except in tests.
// Settings that are already on are not written, so that they need no privilege. The error is
// ErrIPv6 when IPv4 is forwarded and IPv6 is not; a kernel without IPv6 is no error.
func EnableForwarding(root string) error {
	if err := enable(filepath.Join(root, settingIPv4)); err != nil {
		return errors.Wrap(err, "cannot have the kernel forward IPv4; the container must be privileged, or the pod have the sysctl net.ipv4.ip_forward=1")
	}
	if err := enable(filepath.Join(root, settingIPv6)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(ErrIPv6, err)
	}
	return nil
}

// Forwarding returns the families of which the kernel forwards packets. root is ProcSys except in
// tests. A setting that cannot be read counts as on: tailscaled and containerboot report what
// fails.
func Forwarding(root string) address.Families {
	enabled := func(setting string) bool {
		b, err := os.ReadFile(filepath.Join(root, setting))
		if errors.Is(err, fs.ErrNotExist) {
			return false // The kernel does not have the family.
		}
		return err != nil || string(bytes.TrimSpace(b)) != "0"
	}
	return address.Families{IPv4: enabled(settingIPv4), IPv6: enabled(settingIPv6)}
}

func enable(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "cannot read setting")
	}
	if string(bytes.TrimSpace(b)) == "1" {
		return nil
	}
	// The file already exists; its mode does not matter.
	return errors.Wrap(os.WriteFile(path, []byte("1"), 0o600), "cannot write setting")
}

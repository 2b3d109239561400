// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Properties of the TUN device (linux Documentation/networking/tuntap.rst).
const (
	tunMajor  = 10
	tunMinor  = 200
	tunDevice = "dev/net/tun"

	// tunName is the name of the interface that the check creates, and that ends with it.
	tunName = "tsgw-check"
)

// Times of the check of Services.
const (
	connectTimeout = 2 * time.Second
	answerTimeout  = time.Second
	attempts       = 3
)

// Check reports whether this container can use a TUN device, and whether packets that the pod
// forwards arrive at a Service. An invalid address checks no Service. root is "/" except in tests.
func Check(ctx context.Context, root string, service netip.AddrPort) Report {
	r := Report{}
	if err := openTun(root); err != nil {
		r.Tun = cause(err)
		r.TunAbsent = errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
	}
	if service.IsValid() && drops(ctx, service) {
		r.Dropped = service.String()
	}
	return r
}

// cause returns the system's error without the path, which the message has.
func cause(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// openTun does what containerboot and tailscaled do: it creates the device file if there is none
// (tailscale.com cmd/containerboot/main.go, ensureTunFile), opens it, and creates an interface.
func openTun(root string) error {
	path := filepath.Join(root, tunDevice)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return errors.Wrap(err, "cannot create directory of the device")
		}
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(tunMajor, tunMinor))); err != nil {
			return errors.Wrap(err, "cannot create device")
		}
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Wrap(err, "cannot open device")
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq(tunName)
	if err != nil {
		return errors.Wrap(err, "cannot name interface")
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	return errors.Wrap(unix.IoctlIfreq(fd, unix.TUNSETIFF, req), "cannot create interface")
}

// drops reports whether a connection to a Service succeeds, while packets that no socket of the
// pod connected get no answer. Cilium's socket load balancer translates the address of a Service
// when a socket connects (bpf/bpf_sock.c of cilium, cgroup/connect4), and then leaves packets alone
// that leave the pod; those that the kernel forwards never pass a socket
// (tailscale/tailscale#7868). A raw socket is not translated either, so it stands for them. If the
// connection fails, nothing is known.
func drops(ctx context.Context, service netip.AddrPort) bool {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout+attempts*answerTimeout)
	defer cancel()
	d := net.Dialer{Timeout: connectTimeout}
	c, err := d.DialContext(ctx, "tcp", service.String())
	if err != nil {
		return false
	}
	own, err := netip.ParseAddrPort(c.LocalAddr().String())
	// The error does not matter: nothing was sent.
	_ = c.Close()
	if err != nil {
		return false
	}
	for range attempts {
		answered, err := knock(ctx, own.Addr().Unmap(), service)
		if err != nil || answered {
			return false
		}
	}
	return true
}

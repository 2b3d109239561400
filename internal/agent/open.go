// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// openEvery is how often the agent checks for open connections at the end of a drain.
	openEvery = 500 * time.Millisecond

	// resolveTimeout bounds the lookup of backends' addresses.
	resolveTimeout = 5 * time.Second
)

// sockets are the kernel's tables of the pod's TCP sockets. They are the same in all containers
// of a pod.
var sockets = []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}

// States of a socket that still carries data (linux include/net/tcp_states.h).
var openStates = []string{
	"01", // TCP_ESTABLISHED.
	"08", // TCP_CLOSE_WAIT: the backend has closed its sending side, but the client may not have received all data.
}

// destinations are the addresses that tailscaled dials for its handlers.
type destinations map[netip.AddrPort]bool

// destinationsOf looks up the addresses of handlers. Addresses that cannot be found are left
// out: the drain does not wait for their connections.
func destinationsOf(ctx context.Context, handlers map[string]plan.Handlers) destinations {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	out := destinations{}
	for _, hs := range handlers {
		for _, h := range hs {
			host, port, err := net.SplitHostPort(h.Forward)
			if err != nil {
				continue
			}
			p, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				continue
			}
			addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
			if err != nil {
				continue
			}
			for _, a := range addrs {
				out[netip.AddrPortFrom(a.Unmap(), uint16(p))] = true
			}
		}
	}
	return out
}

// open reports whether a connection to one of the destinations is open. Tables that cannot be
// read count as empty.
func (d destinations) open() bool {
	return slices.ContainsFunc(sockets, func(path string) bool {
		f, err := os.Open(path)
		if err != nil {
			return false
		}
		defer f.Close()
		return d.among(f)
	})
}

// among reports whether a table of sockets has an open one to a destination. The columns are
// those of linux net/ipv4/tcp_ipv4.c, tcp4_seq_show: the number, the local and the remote
// address, the state.
func (d destinations) among(table io.Reader) bool {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !slices.Contains(openStates, f[3]) {
			continue
		}
		if a, err := parseSocket(f[2]); err == nil && d[a] {
			return true
		}
	}
	return false
}

// parseSocket parses an address in the kernel's table: 32-bit words in the machine's byte
// order, and the port. All platforms that we build for are little-endian.
func parseSocket(s string) (netip.AddrPort, error) {
	addr, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(addr)
	if err != nil {
		return netip.AddrPort{}, errors.Wrap(err, "cannot parse address")
	}
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, errors.Wrap(err, "cannot parse port")
	}
	for w := range slices.Chunk(b, 4) {
		slices.Reverse(w)
	}
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return netip.AddrPort{}, errors.Errorf("cannot parse address %q", addr)
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), nil
}

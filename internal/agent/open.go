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

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

const (
	// openEvery is how often open connections are looked for at the end of a drain.
	openEvery = 500 * time.Millisecond

	// resolveTimeout bounds how long the addresses of backends are looked up.
	resolveTimeout = 5 * time.Second
)

// sockets are the kernel's tables of the pod's TCP sockets. All containers of a pod have
// the same.
var sockets = []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}

// States of a socket that still carries something (linux include/net/tcp_states.h).
var openStates = []string{
	"01", // TCP_ESTABLISHED.
	"08", // TCP_CLOSE_WAIT: the backend has said all, the client may not have heard it.
}

// destinations are the addresses that tailscaled dials for what it serves.
type destinations map[netip.AddrPort]bool

// destinationsOf looks up where handlers lead to. One that cannot be found is left out:
// nobody waits for its connections.
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

// open reports whether a connection to one of the destinations is open. Tables that cannot
// be read have none.
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

// among reports whether a table of sockets has one that leads to a destination and is open.
// Its columns are those of linux net/ipv4/tcp_ipv4.c, tcp4_seq_show: the number, the local
// and the remote address, the state.
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

// parseSocket parses an address of the kernel's table: words of 32 bits in the machine's
// order, and the port. All machines that we build for are little-endian.
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

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"tailscale.com/client/tailscale/apitype"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// ErrOutside reports that tailscaled would dial an address outside of the tailnet, because no
// device of the tailnet has the address.
var ErrOutside = errors.New("address is not in the tailnet")

// maxMessage bounds the part of tailscaled's answer that goes into an error.
const maxMessage = 200

// redialAfter are the pauses before a dial that has not ended is repeated from another port. The
// earlier attempts continue: the first result counts. The first pause is longer than the round trip of most
// relayed paths, because an attempt too many is a connection that the target sees end at once.
//
// The other side can ignore a port: the network stack of a tailscaled with userspace networking
// drops a SYN from a port whose last connection it closed itself less than 60 s ago. It passes the
// SYN of a connection in TIME_WAIT only to a listening socket (gvisor.dev/gvisor
// pkg/tcpip/transport/tcp/connect.go, handleTimeWaitSegments), and tailscaled has a Forwarder
// instead (tailscale.com wgengine/netstack/netstack.go). The tailscaled that dials chooses its ports
// at random, so with 30 connections per second, one in 27 dials does not get an answer, and all of three
// attempts did not for one of 26,000 connections. With 300 per second it is one in three.
var redialAfter = []time.Duration{
	400 * time.Millisecond, 600 * time.Millisecond, time.Second, time.Second, 2 * time.Second, 3 * time.Second,
}

// redials is how often an attempt is repeated that has failed before the first pause of redialAfter. A device whose
// tailscaled has userspace networking refuses a connection that its backend would accept: tailscaled records the local port of each connection to a backend, and resets
// the client if it has the port on record for a client that has vanished (tailscale.com wgengine/netstack, forwardTCP;
// proxymap, RegisterIPPortIdentity; https://github.com/tailscale/tailscale/pull/18988). The next attempt gets another
// port. After a pod with 16 connections was killed, one of ten dials was refused for some seconds.
const redials = 2

// A Dialer opens connections through tailscaled, only to addresses in the tailnet. It uses
// the LocalAPI directly: local.Client.UserDial dials from the host when tailscaled refuses to
// dial.
type Dialer struct {
	socket string
	unix   net.Dialer
}

// NewDialer returns a Dialer for the tailscaled that listens on socket.
func NewDialer(socket string) *Dialer { return &Dialer{socket: socket} }

// Dial connects to addr. ctx bounds the dialling, not the connection. A dial that takes long or fails at once
// is repeated, and the first connection is used. The error is ErrOutside when no device of the tailnet
// has the address.
//
// A connection cannot be half-closed: tailscaled closes it as soon as one side has ended
// (tailscale.com ipn/localapi, serveDial).
func (d *Dialer) Dial(ctx context.Context, addr netip.AddrPort) (*Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn *Conn
		err  error
	}
	results, done := make(chan result), make(chan struct{})
	defer close(done)
	attempt := func() {
		began := time.Now()
		c, err := d.dial(ctx, "tcp", addr)
		for range redials {
			if err == nil || errors.Is(err, ErrOutside) || ctx.Err() != nil || time.Since(began) >= redialAfter[0] {
				break
			}
			conn, failure := d.dial(ctx, "tcp", addr)
			if failure == nil || ctx.Err() == nil {
				c, err = conn, failure
			}
		}
		select {
		case results <- result{conn: c, err: err}:
		case <-done:
			if c != nil {
				_ = c.Close() // Another attempt was faster.
			}
		}
	}
	go attempt()
	for _, pause := range redialAfter {
		select {
		case r := <-results:
			return r.conn, r.err
		case <-time.After(pause):
			go attempt()
		}
	}
	r := <-results
	return r.conn, r.err
}

// DialContext does the same as Dial with the signature that package net uses. The address must
// not be a name. A network other than "tcp" is dialled only once.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot parse address %q", address)
	}
	dial := d.Dial
	if network != "tcp" {
		dial = func(ctx context.Context, addr netip.AddrPort) (*Conn, error) { return d.dial(ctx, network, addr) }
	}
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dial dials once.
func (d *Dialer) dial(ctx context.Context, network string, addr netip.AddrPort) (*Conn, error) {
	raw, err := d.unix.DialContext(ctx, "unix", d.socket)
	if err != nil {
		return nil, errors.Wrap(err, "cannot connect to tailscaled")
	}
	conn, ok := raw.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.Errorf("not a Unix connection: %T", raw), raw.Close())
	}
	// Tailscaled stops dialling when its client disconnects.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(0, 1)) })
	head, err := upgrade(ctx, conn, network, addr)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, errors.Join(errors.Wrapf(err, "cannot dial %q in the tailnet", addr), conn.Close())
	}
	return &Conn{UnixConn: conn, head: head}, nil
}

// upgrade requests that tailscaled turns conn into a connection to addr. It returns the bytes
// that the other side has already sent.
func upgrade(ctx context.Context, conn net.Conn, network string, addr netip.AddrPort) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+apitype.LocalAPIHost+"/localapi/v0/dial", nil)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make request")
	}
	req.Header = http.Header{
		"Upgrade":      {"ts-dial"},
		"Connection":   {"upgrade"},
		"Dial-Host":    {addr.Addr().String()},
		"Dial-Port":    {strconv.Itoa(int(addr.Port()))},
		"Dial-Network": {network},
	}
	if err := req.Write(conn); err != nil {
		return nil, errors.Wrap(err, "cannot ask tailscaled")
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read tailscaled's answer")
	}
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		head, err := r.Peek(r.Buffered())
		return bytes.Clone(head), errors.Wrap(err, "cannot read what came first")
	case res.Header.Get("Dial-Self") != "":
		return nil, errors.Join(ErrOutside, res.Body.Close())
	}
	msg, err := io.ReadAll(io.LimitReader(res.Body, maxMessage))
	if err != nil {
		return nil, errors.Wrap(err, "cannot read tailscaled's answer")
	}
	return nil, errors.Join(errors.Errorf("%s: %s", res.Status, strings.TrimSpace(strings.ToValidUTF8(string(msg), ""))), res.Body.Close())
}

// A Conn is a connection into the tailnet.
type Conn struct {
	*net.UnixConn

	head []byte
}

// Read reads from the connection.
func (c *Conn) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.UnixConn.Read(b)
}

// WriteTo copies the rest of the connection to w. If w is a TCP connection, the kernel copies.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	var first int64
	if len(c.head) > 0 {
		n, err := w.Write(c.head)
		c.head = c.head[n:]
		first = int64(n)
		if err != nil {
			return first, err
		}
	}
	n, err := io.Copy(w, c.UnixConn)
	return first + n, err
}

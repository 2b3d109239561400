// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

const (
	// answerPause is how long a target may stay silent after its client has closed its sending
	// side. Tailscaled closes both directions of a connection when one direction ends
	// (tailscale.com ipn/localapi, serveDial), so the client's half-close cannot be forwarded to
	// the target before the target's answer is complete.
	answerPause = 10 * time.Second

	// lingerPause is how long a client may continue to send after its target has closed the
	// connection. If the agent closed the connection with unread data, the client would lose the
	// end of the answer.
	lingerPause = 2 * time.Second
)

// carry copies in both directions until both have ended or ctx is done, and then closes both
// connections. It returns the number of bytes sent to the target and received from it. If first is not
// nil, carry calls it with the first data of the client.
func carry(ctx context.Context, client *net.TCPConn, target *localapi.Conn, first func([]byte)) (up, down int64) {
	stop := context.AfterFunc(ctx, func() {
		// Reset the client first, so that it sees an aborted connection and not a regular close by
		// the target. Errors mean that the connections are already closed.
		reset(client)
		_ = target.Close()
	})
	defer stop()

	total := make(chan int64, 1)
	go func() {
		head, err := sendFirst(target.UnixConn, client, first)
		n := int64(0)
		if err == nil {
			// For these two types the kernel copies the data (package net, spliceTo).
			n, err = io.Copy(target.UnixConn, client)
		}
		n += head
		if err == nil {
			_ = target.SetReadDeadline(time.Now().Add(answerPause))
		} else {
			// Either the client was reset or the target has closed. In the second case the data
			// that the target has sent can still be read.
			_ = target.CloseWrite()
			_, _ = io.Copy(io.Discard, client)
		}
		total <- n
	}()

	down = answer(client, target)
	// The client can already have closed the connection.
	_ = client.CloseWrite()
	_ = client.SetReadDeadline(time.Now().Add(lingerPause))
	_ = target.Close()
	up = <-total
	_ = client.Close()
	return up, down
}

// sendFirst copies the first data of the client to the target, and passes it to first. It does nothing
// if first is nil.
func sendFirst(target io.Writer, client *net.TCPConn, first func([]byte)) (int64, error) {
	if first == nil {
		return 0, nil
	}
	if err := awaitData(client); err != nil {
		return 0, errors.Wrap(err, "cannot wait for data")
	}
	b := make([]byte, firstBytes)
	n, err := client.Read(b)
	if n == 0 {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return 0, err
	}
	written, err := target.Write(b[:n])
	first(b[:n])
	return int64(written), err
}

// answer copies from the target to the client until the target closes, or stays silent for too
// long after the client has closed its sending side.
func answer(client *net.TCPConn, target *localapi.Conn) int64 {
	var total int64
	for {
		n, err := io.Copy(client, target)
		total += n
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return total
		}
		_ = target.SetReadDeadline(time.Now().Add(answerPause))
	}
}

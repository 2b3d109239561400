// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

const (
	// answerPause is how long the target of a client that has sent all may keep
	// silent. Tailscaled closes a connection both ways when one has ended
	// (tailscale.com ipn/localapi, serveDial), so that the end cannot be told to
	// the target before its answer is over.
	answerPause = 10 * time.Second

	// lingerPause is how long a client may go on sending to a target that has
	// ended. Were the connection closed with data unread, the client would lose
	// the end of the answer.
	lingerPause = 2 * time.Second
)

// carry copies both ways until both have ended or ctx does, and closes both
// connections. It returns how many bytes went to the target and came from it.
func carry(ctx context.Context, client *net.TCPConn, target *localapi.Conn) (up, down int64) {
	stop := context.AfterFunc(ctx, func() {
		// The client first: it is to see that the connection was cut, and not that its
		// target has ended. Errors mean that they are closed already.
		reset(client)
		_ = target.Close()
	})
	defer stop()

	sent := make(chan int64, 1)
	go func() {
		// Between these two types the kernel copies (package net, spliceTo).
		n, err := io.Copy(target.UnixConn, client)
		if err == nil {
			_ = target.SetReadDeadline(time.Now().Add(answerPause))
		} else {
			// Either the client was reset, or the target has gone, which does not
			// hinder what it had sent to be read.
			_ = target.CloseWrite()
			_, _ = io.Copy(io.Discard, client)
		}
		sent <- n
	}()

	down = answer(client, target)
	// The client may have gone already.
	_ = client.CloseWrite()
	_ = client.SetReadDeadline(time.Now().Add(lingerPause))
	_ = target.Close()
	up = <-sent
	_ = client.Close()
	return up, down
}

// answer copies from the target to the client until the target has ended, or has
// been silent for long after the client has.
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

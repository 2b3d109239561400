// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// TCP holds the options of a client that sends each request on a new TCP connection, and reads until the server closes
// it. It knows nothing else of the protocol: the bytes are a request of HTTP/1.0, so that servers of HTTP answer. A
// connection that is reset, or that the client must close, is a lost request.
type TCP struct {
	// Target is what a request gets.
	Target Target

	// Dial opens a connection.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Clients returns the client of a worker.
func (o TCP) Clients(int) Client { return tcpClient{o} }

type tcpClient struct{ TCP }

func (c tcpClient) Send(ctx context.Context, _ int) (string, error) {
	u, err := url.Parse(c.Target.URL)
	if err != nil {
		return "", errors.Wrap(err, "cannot parse the URL")
	}
	conn, err := c.Dial(ctx, "tcp", hostPort(u))
	if err != nil {
		return "", errors.Wrap(err, "cannot connect")
	}
	defer conn.Close() // The answer is complete.
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", errors.Wrap(err, "cannot set a deadline")
		}
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", u.RequestURI(), u.Host); err != nil {
		return "", errors.Wrap(err, "cannot send")
	}
	b, err := io.ReadAll(conn)
	if err != nil {
		return "", errors.Wrap(err, "cannot read the answer")
	}
	head, body, complete := strings.Cut(string(b), "\r\n\r\n")
	if status, _, _ := strings.Cut(head, "\r\n"); !complete || !strings.Contains(status, " 200 ") {
		return "", errors.Errorf("%s answered %.200q", c.Target, b)
	}
	if c.Target.Check == nil {
		return body, nil
	}
	return body, c.Target.Check(Response{Body: body})
}

func (tcpClient) Close() {}

// hostPort returns the address of a URL. The port is 80 by default.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

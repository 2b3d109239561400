// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package localapi

import (
	"context"
	"net"
	"net/http"
	"time"

	"tailscale.com/client/local"
	"tailscale.com/safesocket"
)

// answerTimeout bounds how long tailscaled may take to answer a request that it is to give up.
const answerTimeout = 10 * time.Second

// A certClient requests certificates so that it learns why there is none.
//
// When a limit of the certificate authority refuses an order, tailscaled does not answer: it waits
// for the time of Retry-After, which may be hours, and orders again. Only when its request ends
// does it return the refusal (tailscale.com tempfork/acme, http.go, defaultBackoff and post). A
// request ends when tailscaled cannot read from the connection any more, so certClient closes its
// half of it when ctx is done, and reads the answer.
type certClient struct {
	*local.Client

	socket string
}

// CertPair returns the certificate of a domain.
func (c certClient) CertPair(ctx context.Context, domain string) (cert, key []byte, err error) {
	return c.CertPairWithValidity(ctx, domain, 0)
}

// CertPairWithValidity returns the certificate of a domain, which tailscaled renews if it is valid
// for a shorter time. When ctx is done, it returns tailscaled's reason, if there is one.
func (c certClient) CertPairWithValidity(ctx context.Context, domain string, minValidity time.Duration) (cert, key []byte, err error) {
	answered, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	give := context.AfterFunc(ctx, func() {
		select {
		case <-answered.Done():
		case <-time.After(answerTimeout):
			cancel()
		}
	})
	defer give()
	dial := func(_ context.Context, _, _ string) (net.Conn, error) {
		conn, err := safesocket.ConnectContext(answered, c.socket)
		if half, ok := conn.(interface{ CloseWrite() error }); err == nil && ok {
			// An error means that the connection has ended, which the reader sees, too.
			context.AfterFunc(ctx, func() { _ = half.CloseWrite() })
		}
		return conn, err
	}
	// A separate connection, which is not used again.
	lc := &local.Client{Socket: c.socket, UseSocketOnly: true, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	cert, key, err = lc.CertPairWithValidity(answered, domain, minValidity)
	if err != nil && answered.Err() != nil {
		return nil, nil, ctx.Err()
	}
	return cert, key, err
}

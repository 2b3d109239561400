// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

// connKey is the context key of a request's connection.
type connKey struct{}

// whoami serves whoamiServer outside of all clusters, where proxies reach it like any
// backend. It ends with ctx.
func (d *Daemon) whoami(ctx context.Context) error {
	l, err := netns.Listen(ctx, plan.ClientNamespace, "tcp", d.cfg.hub().Whoami())
	if err != nil {
		return errors.Wrap(err, "cannot listen for PROXY protocol")
	}
	s := whoamiServer()
	go s.Serve(withHeaders(l)) //nolint:errcheck // Close ends it.
	context.AfterFunc(ctx, func() { _ = s.Close() })
	return nil
}

// withHeaders accepts connections that begin with a header of the PROXY protocol, and
// closes others.
func withHeaders(l net.Listener) net.Listener {
	return &proxyproto.Listener{
		Listener: l,
		ConnPolicy: func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			return proxyproto.REQUIRE, nil
		},
		ReadHeaderTimeout: 5 * time.Second,
	}
}

// whoamiServer returns a server that responds with the client's address in the header of the
// connection, and with the version of the header, as v1 or v2.
func whoamiServer() *http.Server {
	return &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, ok := r.Context().Value(connKey{}).(*proxyproto.Conn)
			if !ok || c.ProxyHeader() == nil {
				http.Error(w, "no header of the PROXY protocol", http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "text/plain")
			// A client that does not read the response has disconnected.
			_, _ = fmt.Fprintf(w, "%s v%d", r.RemoteAddr, c.ProxyHeader().Version) //nolint:gosec // An address as plain text.
		}),
	}
}

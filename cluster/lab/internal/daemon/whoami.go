// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

// whoami answers HTTP with the address of the client, as the PROXY protocol header
// before the connection tells it. A connection without a header is closed. It is
// outside of all clusters, where proxies reach it as they reach any backend. It ends
// with ctx.
func (d *Daemon) whoami(ctx context.Context) error {
	l, err := netns.Listen(ctx, plan.ClientNamespace, "tcp", plan.Whoami)
	if err != nil {
		return errors.Wrap(err, "cannot listen for PROXY protocol")
	}
	s := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, r.RemoteAddr) //nolint:gosec // An address as plain text. Who does not take it is gone.
		}),
	}
	go s.Serve(&proxyproto.Listener{ //nolint:errcheck // Ends by Close.
		Listener: l,
		ConnPolicy: func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			return proxyproto.REQUIRE, nil
		},
		ReadHeaderTimeout: 5 * time.Second,
	})
	context.AfterFunc(ctx, func() { _ = s.Close() })
	return nil
}

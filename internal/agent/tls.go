// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/terminate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

// A tlsRole terminates TLS with certificates from Secrets.
type tlsRole struct {
	plainRole

	log    logging.Logger
	retry  *retrier
	server *terminate.Server
}

// restore loads the certificates of an earlier run.
func (r *tlsRole) restore(ctx context.Context) error {
	if err := r.server.Restore(ctx); err != nil {
		r.log.Info("Ignoring certificates of an earlier run", "error", err)
	}
	return nil
}

// prepare serves the wanted services, and leaving ones as long as tailscaled forwards to them.
func (r *tlsRole) prepare(ctx context.Context, at time.Time, f facts) {
	wanted := plan.TerminationsOf(f.services)
	planned := map[string]bool{}
	for _, s := range f.services {
		planned[s.Name] = true
	}
	for name, ts := range r.server.Serving() {
		if !planned[name] && f.handlers[name] != nil {
			wanted[name] = ts
		}
	}
	if err := r.server.Set(ctx, wanted); err != nil {
		r.retry.failed(at, "Cannot keep certificates for a restart of the agent", err)
	}
}

// step returns when the next certificate expires.
func (r *tlsRole) step(_ context.Context, at time.Time, f facts) time.Time {
	var out time.Time
	for _, c := range f.certificates {
		// One is valid at that time itself.
		out = earliest(at, out, c.NotAfter.Add(time.Nanosecond))
	}
	return out
}

// anonymous reports whether tailscaled does not send the addresses of clients. While its version is
// unknown, what a restarted agent serves says so.
func (r *tlsRole) anonymous(version string) bool {
	if version != "" {
		return !tailscaled.SendsClients(version)
	}
	for _, ts := range r.server.Serving() {
		if slices.ContainsFunc(ts, func(t plan.Termination) bool { return t.Anonymous }) {
			return true
		}
	}
	return false
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/atomicdir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/terminate"
)

const (
	// dirTLS is where the certificates in use are kept, beside tailscaled's config:
	// that is a volume in memory, for auth keys pass through it.
	dirTLS = "tls"

	// fileTLS is the one file there.
	fileTLS = "tls.json"
)

// newEnder returns what ends TLS with certificates of Secrets.
func (a *Agent) newEnder(ctx context.Context) *terminate.Server {
	return terminate.New(terminate.Options{
		Watch: func(ctx context.Context, name string, fn func(*corev1.Secret)) {
			kube.WatchSecret(ctx, a.client, client.ObjectKey{Namespace: a.opts.PodNamespace, Name: name}, fn)
		},
		WhoIs:   a.local.WhoIs,
		Changed: func() { a.do(ctx, func(*loop) {}) },
		Store:   atomicdir.New(filepath.Join(filepath.Dir(a.opts.TailscaledConfigDir), dirTLS), fileTLS),
		Log:     a.log,
	})
}

// endTLS has TLS ended for what is wanted, and for what nobody wants any more while
// tailscaled forwards to it still.
func (l *loop) endTLS(ctx context.Context, now time.Time, services []plan.Service) {
	wanted := plan.TerminationsOf(services)
	planned := map[string]bool{}
	for _, s := range services {
		planned[s.Name] = true
	}
	for name, ts := range l.ender.Serving() {
		if !planned[name] && l.handlers[name] != nil {
			wanted[name] = ts
		}
	}
	if err := l.ender.Set(ctx, wanted); err != nil {
		l.failed(now, "Cannot keep certificates for a restart of the agent", err)
	}
}

// https tells whether the tailnet provides certificates.
func (l *loop) https() plan.HTTPS {
	switch {
	case !l.tailnet.Running || !l.tailnet.HTTPSKnown:
		return plan.HTTPSUnknown
	case l.tailnet.HTTPS:
		return plan.HTTPSOn
	default:
		return plan.HTTPSOff
	}
}

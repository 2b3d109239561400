// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"net"
	"net/http"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/credentials"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/dns"
	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
	"github.com/tailscale-gateway/tailscale-gateway/extension/explain"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways"
	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/observe"
	"github.com/tailscale-gateway/tailscale-gateway/extension/policies"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver"
	"github.com/tailscale-gateway/tailscale-gateway/internal/trace"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const (
	// edsStreams is the number of targets that an Envoy may have. Each has a stream, and with TLS a
	// connection as well: gRPC shares connections only between equal credentials, and those of two
	// clusters are never equal (cmp_impl of SslCredentials in gRPC's
	// src/core/credentials/transport/ssl).
	edsStreams = 16 << 10

	// edsConnections is the number of connections of all Envoys. One address may have a half.
	edsConnections = 2 * edsStreams

	// edsBuffer is the size of a connection's read and write buffers, in bytes: endpoint lists are
	// small, and connections many.
	edsBuffer = 4 << 10
)

// listeners are opened before anything is served, so that a port in use is an error at once.
type listeners struct {
	hooks, eds, observe net.Listener
}

func listen(ctx context.Context, c *CLI) (*listeners, error) {
	l := &listeners{}
	for _, socket := range []struct {
		listener *net.Listener
		address  string
	}{
		{&l.observe, c.ObserveAddress},
		{&l.hooks, c.HooksAddress},
		{&l.eds, c.EDSAddress},
	} {
		var err error
		if *socket.listener, err = serve.Listen(ctx, socket.address); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// newEndpointServer returns a server for Envoys, without services.
func newEndpointServer(c credentials.TransportCredentials) *serve.Server {
	return serve.NewServer(serve.Options{Credentials: c, MaxStreams: edsStreams, MaxConnections: edsConnections, Buffer: edsBuffer})
}

// run runs the extension until ctx ends. Clients may connect from the start, but the servers answer
// only when all objects are known: an earlier answer would remove endpoints from Envoys.
func run(ctx context.Context, c *CLI, log logging.Logger) error {
	certs, err := newCertificates(ctx, c, log)
	if err != nil {
		return err
	}
	store := index.NewStore()
	store.SetDialPolicy(c.dialPolicy())
	store.CheckRules(xds.CheckRule)
	src, err := newSource(c, store, log)
	if err != nil {
		return err
	}
	traces, err := trace.New(ctx, c.OTLPEndpoint, "tailscale-gateway-extension", version.Version)
	if err != nil {
		return err
	}
	endpoints := eds.NewServer(store.Snapshot, eds.Options{Log: log, Tracer: traces.Tracer()})
	lead, kube, err := leaderOf(c, src)
	if err != nil {
		return err
	}
	prober, err := newProber(c, kube, lead, store, log)
	if err != nil {
		return err
	}
	var obs *observe.Observer
	collectors := []prometheus.Collector{endpoints.Metrics(), prober.Metrics(), store.Metrics()}
	var shared *gateways.Controller
	if lead != nil && c.Gateways {
		shared, err = newGateways(c, kube, lead, store, func(gateway string) observe.Hooks { return obs.Hooks(gateway) }, log)
		if err != nil {
			return err
		}
		collectors = append(collectors, shared.Metrics())
	}
	if lead != nil {
		o := policies.Options{
			Gateway: c.only(),
			// A Gateway's dedicated extension may not search a tailnet.
			Discover: c.Discoveries && c.only() == nil,
			Log:      log,
		}
		lead.duties = append(lead.duties,
			policies.NewWriter(store, kube.informers, kube.client, o).Run,
			policies.NewTLSWriter(store, kube.informers, kube.client, o).Run)
	}
	settings := &explain.Settings{}
	obs = observe.NewObserver(observe.Options{
		Version:   version.Version,
		Silence:   src.Silence,
		Waiting:   src.Waiting,
		Resources: func() map[string]int { return store.Snapshot().Counts() },
		Expiry:    certs.expiry(),
		Gateway:   hooks.Gateway,
		Pages:     []func(*http.ServeMux){explain.NewPage(store.Snapshot, prober.Target, shared.Reports, settings, log).Register},
		Log:       log,
	}, collectors...)

	hooksServer := serve.NewServer(serve.Options{
		Credentials: serve.Credentials(certs.hooks, certs.hooksClients),
		MaxMessage:  cmp.Or(c.HooksMaxMessage<<20, serve.HookMessage),
		Interceptor: obs.Interceptor,
		Stats:       serve.TraceCalls(traces),
		// Envoy Gateway has neither keepalive nor deadline.
		Patient: true,
	})
	pb.RegisterEnvoyGatewayExtensionServer(hooksServer, hooks.NewServer(store, certs.Source,
		hooks.WithLogger(log),
		hooks.WithRecorder(hooks.RecorderFn(func(t hooks.Translation) {
			settings.Translated(t.Gateway, t.Settings)
			obs.Translated(t.Gateway, t.Outcomes(src.Translated(t)))
		})),
	))
	edsServer := newEndpointServer(serve.Credentials(certs.eds, certs.edsClients))
	endpoints.Register(edsServer)

	l, err := listen(ctx, c)
	if err != nil {
		return err
	}
	log.Info("Starting", "version", version.Version, "hooks", c.HooksAddress, "eds", c.EDSAddress, "observe", c.ObserveAddress)

	// Parts that others depend on end last: the servers drain while the index, which they answer
	// from, is still updated. This is not a controller-runtime Manager, which stops all runnables
	// that are neither caches nor HTTP servers at once, and which ends the process when it loses
	// the Lease (sigs.k8s.io/controller-runtime pkg/manager/internal.go, engageStopProcedure and
	// initLeaderElector). Here a replica without the Lease continues to serve.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	dependencies, base := errgroup.WithContext(base)
	dependencies.Go(func() error { return observe.Run(base, l.observe, withHealth(obs.Handler(c.Pprof), prober)) })
	dependencies.Go(func() error { return src.Start(base) })
	dependencies.Go(func() error { return follow(base, store, endpoints) })
	dependencies.Go(func() error {
		return dns.Run(base, store, dns.Local(log), resolver.Options{Lookups: limits.LookupSlots, Log: log})
	})
	dependencies.Go(func() error { return certs.run(base, src.Again) })
	if c.Probe {
		dependencies.Go(func() error { return prober.run(base, src.Synced()) })
	}
	if lead != nil && len(lead.duties) > 0 {
		dependencies.Go(func() error { return lead.run(base, src.Synced()) })
	}
	if shared != nil {
		dependencies.Go(func() error { return shared.Watch(base) })
		dependencies.Go(func() error { return shared.CountHooks(base) })
	}
	dependencies.Go(func() error { return traces.Run(base) })

	servers, ctx := errgroup.WithContext(ctx)
	servers.Go(func() error {
		select {
		case <-base.Done():
			// A dependency has failed, and returns its error.
			return base.Err()
		case <-ctx.Done():
			return nil
		}
	})
	servers.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-src.Synced():
		}
		obs.Serving()
		log.Info("Serving")
		servers.Go(func() error { return hooksServer.Run(ctx, l.hooks, c.Drain) })
		servers.Go(func() error { return edsServer.Run(ctx, l.eds, c.Drain) })
		<-ctx.Done()
		obs.Stopping()
		log.Info("Stopping")
		return nil
	})
	failed := servers.Wait()
	cancel()
	if err := dependencies.Wait(); err != nil {
		return err
	}
	src.Farewell(log)
	return failed
}

// leaderOf returns the leader of the replicas, and the source that it uses. Both are nil if there
// is no API to write to, or no namespace for the Lease.
func leaderOf(c *CLI, src source) (*leader, *kubeSource, error) {
	k, ok := src.(*kubeSource)
	if !ok || c.Namespace == "" {
		return nil, nil, nil
	}
	l, err := newLeader(k.cfg, c.Namespace, leaseOf(c.only()))
	return l, k, err
}

// follow announces each new snapshot to the endpoint server.
func follow(ctx context.Context, store *index.Store, s *eds.Server) error {
	changes := store.Subscribe()
	defer changes.Close()
	// Changes from before the subscription.
	s.Changed()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Run(ctx) })
	g.Go(func() error { return each(ctx, changes, s.Changed) })
	return g.Wait()
}

// each calls fn for each change until ctx ends.
func each(ctx context.Context, changes *index.Subscription, fn func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.Changed():
			changes.Take()
			fn()
		}
	}
}

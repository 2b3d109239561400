// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package app connects the extension's packages to a list of tasks, and runs them.
package app

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/certificates"
	"github.com/tailscale-gateway/tailscale-gateway/extension/dns"
	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
	"github.com/tailscale-gateway/tailscale-gateway/extension/explain"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health/report"
	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/observe"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/extension/source"
	"github.com/tailscale-gateway/tailscale-gateway/internal/authorities"
	"github.com/tailscale-gateway/tailscale-gateway/internal/resolver"
	"github.com/tailscale-gateway/tailscale-gateway/internal/trace"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// taskObjects is the name of the task that reads objects. It is ready when all objects are known.
const taskObjects = "objects"

// WriteCertificates creates or renews the certificates of the chart's extension. servers are the DNS names of
// both servers.
func WriteCertificates(ctx context.Context, o Options, name string, servers []string, log logging.Logger) error {
	cfg, err := o.restConfig()
	if err != nil {
		return err
	}
	return certificates.Write(ctx, cfg, o.Namespace, name, servers, log)
}

// Run runs the extension until ctx ends. Clients may connect from the start, but the servers answer
// only when all objects are known: an earlier answer would remove endpoints from Envoys.
func Run(ctx context.Context, o Options, log logging.Logger) error {
	a, err := newApp(ctx, o, log)
	if err != nil {
		return err
	}
	l, err := listen(ctx, o)
	if err != nil {
		return err
	}
	log.Info("Starting", "version", version.Version, "hooks", o.HooksAddress, "eds", o.EDSAddress, "observe", o.ObserveAddress)
	// After a failed task as well: this process ends whatever the reason, so Envoy Gateway should call another
	// replica. The call has a time limit.
	defer a.objects.Farewell(log)
	return runTasks(ctx, a.tasks(l))
}

// An app has the objects that tasks share.
type app struct {
	options   Options
	log       logging.Logger
	store     *index.Store
	objects   source.Source
	certs     *certificates.Certificates
	traces    *trace.Provider
	observer  *observe.Observer
	prober    *health.Prober
	endpoints *eds.Server
	writers   writers
}

func newApp(ctx context.Context, o Options, log logging.Logger) (*app, error) {
	cfg, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	a := &app{options: o, log: log, store: newStore(o)}
	if a.certs, err = certificates.New(ctx, cfg, o.Certificates, log); err != nil {
		return nil, err
	}
	var api *source.API
	if a.objects, api, err = newSource(o, cfg, a.store, log); err != nil {
		return nil, err
	}
	trusted, err := authorities.Pool(o.CABundle)
	if err != nil {
		return nil, err
	}
	if a.traces, err = trace.New(ctx, o.OTLPEndpoint, "tailscale-gateway-extension", version.Version, trusted); err != nil {
		return nil, err
	}
	a.observer = observe.NewObserver(observe.Options{
		Version:   version.Version,
		Silence:   a.objects.Silence,
		Waiting:   a.objects.Waiting,
		Resources: func() map[string]int { return a.store.Snapshot().Counts() },
		Expiry:    a.certs.Expiry(),
		Gateway:   hooks.Gateway,
		Log:       log,
	})
	changes := report.NewChanges()
	index.NewRoutes(a.store).Notify(changes.AddServices)
	a.prober = health.NewProber(a.store, health.Options{Log: log, Checker: health.NetChecker{Loopback: o.dialPolicy().Loopback, Authorities: trusted}, Transition: changes.Add})
	if api != nil && o.Namespace != "" {
		i := inputs{store: a.store, targets: a.prober, changes: changes, hooks: a.observer.Hooks}
		if a.writers, err = newWriters(o, api, i, log); err != nil {
			return nil, err
		}
	}
	a.endpoints = eds.NewServer(a.store.Snapshot, eds.Options{Log: log, Tracer: a.traces.Tracer()})
	a.observer.Register(a.endpoints.Metrics(), a.prober.Metrics(), a.store.Metrics())
	a.observer.Register(a.writers.collectors...)
	return a, nil
}

// tasks returns the tasks of the extension, which accept calls on listeners.
func (a *app) tasks(l *listeners) []task {
	settings := &explain.Settings{}
	page := explain.NewPage(a.store.Snapshot, a.prober.Target, a.writers.reports, settings, a.log)
	handler := a.observer.Handler(a.options.Pprof, page.Register, func(mux *http.ServeMux) { mux.Handle("GET /endpoints", a.prober) })
	hookServer := a.newHookServer(settings)
	endpointServer := newEndpointServer(serve.Credentials(a.certs.EDS, a.certs.EDSClients))
	a.endpoints.Register(endpointServer)

	out := []task{
		{name: "traces", run: a.traces.Run},
		{name: "observer", run: func(ctx context.Context) error { return observe.Run(ctx, l.observe, handler) }},
		{name: taskObjects, ready: a.objects.Synced(), run: a.objects.Start},
		{name: "certificates", run: func(ctx context.Context) error { return a.certs.Run(ctx, a.objects.Again) }},
		{name: "names", run: func(ctx context.Context) error {
			return dns.Run(ctx, a.store, dns.Local(a.log), resolver.Options{Lookups: limits.LookupSlots, Log: a.log})
		}},
		{name: "endpoints", run: a.pushEndpoints},
	}
	if a.options.Probe {
		out = append(out, task{name: "probes", uses: []string{taskObjects}, run: a.probe})
	}
	out = append(out, a.writers.tasks...)
	// The servers drain while the index, which they answer from, is still updated.
	used := namesOf(out)
	return append(out,
		task{name: "readiness", uses: used, run: a.announce},
		task{name: "hook server", uses: used, run: func(ctx context.Context) error { return hookServer.Run(ctx, l.hooks, a.options.Drain) }},
		task{name: "endpoint server", uses: used, run: func(ctx context.Context) error { return endpointServer.Run(ctx, l.eds, a.options.Drain) }},
	)
}

// newStore returns the store of the Gateways that the extension serves.
func newStore(o Options) *index.Store {
	store := index.NewStore()
	store.SetDialPolicy(o.dialPolicy())
	if o.Gateway != nil {
		store.Serve(func(n types.NamespacedName) bool { return n == *o.Gateway })
	}
	if o.EnvoyGatewayConfig != nil {
		store.EnvoyGatewayConfig(*o.EnvoyGatewayConfig)
	}
	return store
}

// newSource returns the source of objects, and the API that it reads. There is no API if objects are files.
func newSource(o Options, cfg *rest.Config, store *index.Store, log logging.Logger) (source.Source, *source.API, error) {
	if o.FromFiles != "" {
		out, err := source.NewFolder(o.FromFiles, o.kinds(), store, log)
		return out, nil, err
	}
	api, err := source.NewAPI(cfg, o.namespaces()...)
	if err != nil {
		return nil, nil, err
	}
	out, err := source.NewKubernetes(api, o.kinds(), source.Writes{Placeholders: o.Placeholders, Vacant: o.Failover, Gateway: o.Gateway}, store, log)
	return out, api, err
}

// announce reports readiness until ctx ends.
func (a *app) announce(ctx context.Context) error {
	a.observer.Serving()
	a.log.Info("Serving")
	<-ctx.Done()
	a.observer.Stopping()
	a.log.Info("Stopping")
	return nil
}

// pushEndpoints announces each new snapshot to the endpoint server until ctx ends.
func (a *app) pushEndpoints(ctx context.Context) error {
	changes := a.store.Subscribe()
	defer changes.Close()
	// Changes from before the subscription.
	a.endpoints.ChangedAll()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.endpoints.Run(ctx) })
	g.Go(func() error { return changes.Each(ctx, a.endpoints.Changed) })
	return g.Wait()
}

// probe probes the endpoints of each new snapshot until ctx ends.
func (a *app) probe(ctx context.Context) error {
	changes := a.store.Subscribe()
	defer changes.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.prober.Run(ctx) })
	g.Go(func() error { return changes.Each(ctx, func([]string, bool) { a.prober.Changed() }) })
	return g.Wait()
}

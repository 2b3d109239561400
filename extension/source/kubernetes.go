// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/events"
	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/placeholder"
	"github.com/tailscale-gateway/tailscale-gateway/extension/references"
	"github.com/tailscale-gateway/tailscale-gateway/extension/resync"
	"github.com/tailscale-gateway/tailscale-gateway/extension/vacant"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
)

// farewellLimit is the time that a shutdown may wait for the API server.
const farewellLimit = 2 * time.Second

// An API has the clients of an API server that the source and writers share.
type API struct {
	Config *rest.Config

	// Mapper maps kinds to resources. All clients share it, because it has some hundred kB.
	Mapper kmeta.RESTMapper

	// Informers are the caches, which Kubernetes starts.
	Informers cache.Cache

	// Client writes the kinds that the extension reads.
	Client client.Client
}

// NewAPI returns the clients of an API server. The informers read only the given namespaces; none stands
// for all.
func NewAPI(cfg *rest.Config, namespaces ...string) (*API, error) {
	mapper, err := newMapper(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	informers, err := watch.NewCache(cfg, mapper, namespaces...)
	if err != nil {
		return nil, err
	}
	scheme, err := parse.Scheme()
	if err != nil {
		return nil, err
	}
	out := &API{Config: cfg, Mapper: mapper, Informers: informers}
	if out.Client, err = out.NewClient(cfg, scheme); err != nil {
		return nil, err
	}
	return out, nil
}

// NewClient returns a client of the API server, with the types of a scheme. It has no cache.
func (a *API) NewClient(cfg *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	c, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: a.Mapper})
	return c, errors.Wrap(err, "cannot make a client of the Kubernetes API")
}

// Writes are the objects that a source also writes, beside TailscaleRevisions and events.
type Writes struct {
	// Placeholders are placeholder routes, and Vacant EndpointSlices of Services that fail over.
	Placeholders, Vacant bool

	// Gateway is the one that the extension is dedicated to. Nil means that it serves all.
	Gateway *types.NamespacedName
}

// NewKubernetes returns a source of an API server's objects of the given kinds.
func NewKubernetes(api *API, kinds map[string]client.Object, w Writes, store *index.Store, log logging.Logger) (*Kubernetes, error) {
	d, err := discovery.NewDiscoveryClientForConfig(api.Config)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	kube, err := typedcorev1.NewForConfig(namedConfig(api.Config))
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client that reads Secrets and ConfigMaps")
	}
	out := &Kubernetes{
		named:     []watcher{references.NewSecretWatcher(store, kube, log), references.NewConfigMapWatcher(store, kube, log)},
		synced:    make(chan struct{}),
		Source:    watch.NewSource(api.Informers, kinds, store, log),
		contact:   newContact(d.ServerVersion, log),
		informers: api.Informers,
		resync:    resync.New(api.Client, store, log),
		events:    events.New(store, events.NewEventRecorder(api.Client, api.Informers), log),
	}
	if w.Placeholders {
		out.placeholders = placeholder.New(api.Client, store, log)
	}
	if w.Vacant {
		out.vacant = vacant.New(api.Client, store, w.Gateway, log)
	}
	return out, nil
}

func newMapper(cfg *rest.Config) (kmeta.RESTMapper, error) {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(cfg, c)
}

// Rate of the requests for Secrets and ConfigMaps, each of which has a watch, as the kubelet's
// kubeAPIQPS and kubeAPIBurst (SetDefaults_KubeletConfiguration in Kubernetes'
// pkg/kubelet/apis/config/v1beta1/defaults.go). With client-go's 5 in a second, a replica that starts
// would wait for minutes. Without any limit, as many ConfigMaps as package limits admits, each of
// 1 MiB, could be decoded at once.
const namedQPS, namedBurst = 50, 100

// namedConfig returns the configuration of the client that reads objects by their names.
func namedConfig(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.QPS, out.Burst = namedQPS, namedBurst
	return out
}

// A watcher reads objects of a kind that others name.
type watcher interface {
	// Run runs until ctx ends. It calls settled once, when the objects of the start are known.
	Run(ctx context.Context, settled func()) error
}

// Kubernetes is a Source that runs informers, and the writers that depend on them.
type Kubernetes struct {
	*watch.Source
	*contact

	informers cache.Cache
	resync    *resync.Controller
	events    *events.Reporter
	named     []watcher

	// synced is closed when the Secrets and ConfigMaps that objects name are known.
	synced chan struct{}

	// placeholders and vacant may be nil.
	placeholders *placeholder.Controller
	vacant       *vacant.Controller
}

// Synced implements Source.
func (s *Kubernetes) Synced() <-chan struct{} { return s.synced }

// Waiting implements Source.
func (s *Kubernetes) Waiting() []string {
	out := s.Source.Waiting()
	select {
	case <-s.synced:
	default:
		if s.HasSynced() {
			out = append(out, "Secrets and ConfigMaps that objects name: are not known yet")
		}
	}
	return out
}

// Start runs informers and source.
func (s *Kubernetes) Start(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return errors.Wrap(s.informers.Start(ctx), "cannot run informers") })
	g.Go(func() error { return errors.Wrap(s.Source.Start(ctx), "cannot watch objects") })
	g.Go(func() error { return s.read(ctx) })
	g.Go(func() error { return s.poll(ctx) })
	g.Go(func() error { return s.write(ctx) })
	return g.Wait()
}

// read reads Secrets and ConfigMaps once the objects that name them are known.
func (s *Kubernetes) read(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Source.Synced():
	}
	g, ctx := errgroup.WithContext(ctx)
	settled := make(chan struct{}, len(s.named))
	for _, w := range s.named {
		g.Go(func() error {
			return errors.Wrap(w.Run(ctx, func() { settled <- struct{}{} }), "cannot read named objects")
		})
	}
	for range s.named {
		select {
		case <-ctx.Done():
			return g.Wait()
		case <-settled:
		}
	}
	close(s.synced)
	return g.Wait()
}

// write starts the writers once all objects are known: they would take an incomplete set for a
// complete one.
func (s *Kubernetes) write(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Synced():
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return errors.Wrap(s.resync.Run(ctx, s.informers), "cannot keep TailscaleRevisions")
	})
	g.Go(func() error { return errors.Wrap(s.events.Run(ctx), "cannot report problems of routes") })
	if s.placeholders != nil {
		g.Go(func() error {
			return errors.Wrap(s.placeholders.Run(ctx, s.informers), "cannot reconcile placeholder routes")
		})
	}
	if s.vacant != nil {
		g.Go(func() error {
			return errors.Wrap(s.vacant.Run(ctx, s.informers), "cannot reconcile EndpointSlices of Services that fail over")
		})
	}
	return g.Wait()
}

// Translated implements Source.
func (s *Kubernetes) Translated(t hooks.Translation) int {
	s.events.Translated(t.Gateway, t.SkippedRules)
	stale := 0
	for _, a := range t.Answers {
		if s.resync.RecordAnswer(a.Gateway, a.Revision, a.Digest) {
			stale++
		}
	}
	return stale
}

// Again implements Source.
func (s *Kubernetes) Again() { s.resync.ResyncAll() }

// Farewell implements Source. It has no effect while the API server is unreachable.
func (s *Kubernetes) Farewell(log logging.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), farewellLimit)
	defer cancel()
	if err := s.resync.HandOver(ctx); err != nil {
		log.Info("Cannot make Envoy Gateway call another replica; it will after the next change", "error", err)
	}
}

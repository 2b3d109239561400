// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/events"
	"github.com/tailscale-gateway/tailscale-gateway/extension/files"
	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/extension/placeholder"
	"github.com/tailscale-gateway/tailscale-gateway/extension/resync"
	"github.com/tailscale-gateway/tailscale-gateway/extension/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/extension/watch"
)

// farewellLimit is the time that a shutdown may wait for the API server.
const farewellLimit = 2 * time.Second

// A source keeps a store up to date.
type source interface {
	// Start reads objects until ctx ends.
	Start(ctx context.Context) error

	// Synced returns a channel that is closed when the store has all objects of the start.
	Synced() <-chan struct{}

	// Waiting returns the reasons why the source is not synced yet.
	Waiting() []string

	// Silence returns the time for which the origin of the objects has been unreachable.
	Silence() time.Duration

	// Translated records the result of a hook, and returns the number of answers that were from
	// older objects than requested, each counted once. It does not wait.
	Translated(t hooks.Translation) int

	// Again makes Envoy Gateway translate all Gateways again.
	Again()

	// Farewell makes Envoy Gateway call other replicas, because this process no longer answers.
	Farewell(log logging.Logger)
}

func newSource(c *CLI, store *index.Store, log logging.Logger) (source, error) {
	only := c.only()
	if only != nil {
		store.Serve(func(n types.NamespacedName) bool { return n == *only })
	}
	if n := namespacedName(c.EnvoyGatewayConfig); n != nil {
		store.EnvoyGatewayConfig(*n)
	}
	if c.FromFiles != "" {
		return newFileSource(c.FromFiles, c.kinds(), store, log)
	}
	cfg, err := restConfig(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	var namespaces []string
	if only != nil {
		namespaces = append(namespaces, only.Namespace)
	}
	informers, err := watch.NewCache(cfg, namespaces...)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	scheme, err := parse.Scheme()
	if err != nil {
		return nil, err
	}
	w, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client that writes")
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client that reads Secrets")
	}
	out := &kubeSource{
		cfg:       cfg,
		secrets:   secrets.NewWatcher(store, kube, log),
		synced:    make(chan struct{}),
		Source:    watch.NewSource(informers, c.kinds(), store, log),
		contact:   newContact(d.ServerVersion, log),
		informers: informers,
		client:    w,
		resync:    resync.New(w, store, log),
		events:    events.New(store, events.NewEventRecorder(w, informers), log),
	}
	if c.Placeholders {
		out.placeholders = placeholder.New(w, store, log)
	}
	return out, nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		return cfg, errors.Wrap(err, "cannot get Kubernetes config of the pod; outside of one give --kubeconfig or --from-files")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	return cfg, errors.Wrapf(err, "cannot read kubeconfig %q", kubeconfig)
}

// A kubeSource runs informers, and the writers that depend on them.
type kubeSource struct {
	*watch.Source
	*contact

	cfg       *rest.Config
	informers cache.Cache
	client    client.Client
	resync    *resync.Controller
	events    *events.Reporter
	secrets   *secrets.Watcher

	// synced is closed when the Secrets that objects name are known.
	synced chan struct{}

	// placeholders may be nil.
	placeholders *placeholder.Controller
}

// Synced implements source.
func (s *kubeSource) Synced() <-chan struct{} { return s.synced }

// Start runs informers and source.
func (s *kubeSource) Start(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return errors.Wrap(s.informers.Start(ctx), "cannot run informers") })
	g.Go(func() error { return errors.Wrap(s.Source.Start(ctx), "cannot watch objects") })
	g.Go(func() error { return s.read(ctx) })
	g.Go(func() error { return s.poll(ctx) })
	g.Go(func() error { return s.write(ctx) })
	return g.Wait()
}

// read reads Secrets once the objects that name them are known.
func (s *kubeSource) read(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Source.Synced():
	}
	return errors.Wrap(s.secrets.Run(ctx, func() { close(s.synced) }), "cannot read Secrets")
}

// write starts the writers once all objects are known: they would take an incomplete set for a
// complete one.
func (s *kubeSource) write(ctx context.Context) error {
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
	return g.Wait()
}

// Translated implements source.
func (s *kubeSource) Translated(t hooks.Translation) int {
	s.events.Translated(t.Gateway, t.LeftRules)
	stale := 0
	for _, a := range t.Answers {
		if s.resync.RecordAnswer(a.Gateway, a.Asked, a.Given) {
			stale++
		}
	}
	return stale
}

// Again implements source.
func (s *kubeSource) Again() { s.resync.ResyncAll() }

// Farewell implements source. It has no effect while the API server is unreachable.
func (s *kubeSource) Farewell(log logging.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), farewellLimit)
	defer cancel()
	if err := s.resync.HandOver(ctx); err != nil {
		log.Info("Cannot make Envoy Gateway call another replica; it will after the next change", "error", err)
	}
}

// A fileSource reads a folder. It waits only for the first read.
type fileSource struct{ *files.Source }

// Waiting implements source.
func (fileSource) Waiting() []string { return nil }

// Translated implements source. There is no API to write to.
func (fileSource) Translated(hooks.Translation) int { return 0 }

// Again implements source.
func (fileSource) Again() {}

// Farewell implements source.
func (fileSource) Farewell(logging.Logger) {}

// Silence implements source.
func (fileSource) Silence() time.Duration { return 0 }

func newFileSource(dir string, all map[string]client.Object, store *index.Store, log logging.Logger) (source, error) {
	s, err := parse.Scheme()
	if err != nil {
		return nil, err
	}
	kinds, err := kindsOf(all, s)
	if err != nil {
		return nil, err
	}
	apply := func(changed, gone []client.Object) {
		var changes []index.Change
		for _, o := range changed {
			if s, ok := o.(*corev1.Secret); ok {
				hold(store, client.ObjectKeyFromObject(o), s)
				continue
			}
			changes = append(changes, index.Change{Object: o})
		}
		for _, o := range gone {
			if _, ok := o.(*corev1.Secret); ok {
				hold(store, client.ObjectKeyFromObject(o), nil)
				continue
			}
			changes = append(changes, index.Change{Object: o, Gone: true})
		}
		if err := store.Apply(changes...); err != nil {
			log.Info("Cannot use an object; the others are used", "error", err)
		}
	}
	return fileSource{files.NewSource(dir, s, kinds, apply, log)}, nil
}

// hold stores a Secret's state, which stays while the folder does.
func hold(store *index.Store, n types.NamespacedName, s *corev1.Secret) {
	h := parse.ParseSecret(n, s, time.Now())
	store.SetSecret(n, &h)
}

// kindsOf returns the kinds of objects, and Secrets. A folder for Envoy Gateway has more kinds.
func kindsOf(all map[string]client.Object, s *runtime.Scheme) (map[schema.GroupKind]bool, error) {
	out := map[schema.GroupKind]bool{corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(): true}
	for _, o := range all {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot get the kind of %T", o)
		}
		out[gvk.GroupKind()] = true
	}
	return out, nil
}

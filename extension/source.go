// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/tailscale-gateway/tailscale-gateway/extension/references"
	"github.com/tailscale-gateway/tailscale-gateway/extension/resync"
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
	gateway := c.only()
	if gateway != nil {
		store.Serve(func(n types.NamespacedName) bool { return n == *gateway })
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
	if gateway != nil {
		namespaces = append(namespaces, gateway.Namespace)
	}
	mapper, err := newMapper(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	informers, err := watch.NewCache(cfg, mapper, namespaces...)
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
	w, err := client.New(cfg, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client that writes")
	}
	kube, err := kubernetes.NewForConfig(namedConfig(cfg))
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client that reads Secrets and ConfigMaps")
	}
	out := &kubeSource{
		cfg:       cfg,
		mapper:    mapper,
		named:     []watcher{references.NewSecretWatcher(store, kube, log), references.NewConfigMapWatcher(store, kube, log)},
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

// newMapper returns a mapper of kinds to resources, which all clients share: it has some hundred kB.
func newMapper(cfg *rest.Config) (kmeta.RESTMapper, error) {
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(cfg, c)
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		return cfg, errors.Wrap(err, "cannot get Kubernetes config of the pod; outside of one give --kubeconfig or --from-files")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	return cfg, errors.Wrapf(err, "cannot read kubeconfig %q", kubeconfig)
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

// A kubeSource runs informers, and the writers that depend on them.
type kubeSource struct {
	*watch.Source
	*contact

	cfg       *rest.Config
	mapper    kmeta.RESTMapper
	informers cache.Cache
	client    client.Client
	resync    *resync.Controller
	events    *events.Reporter
	named     []watcher

	// synced is closed when the Secrets and ConfigMaps that objects name are known.
	synced chan struct{}

	// placeholders may be nil.
	placeholders *placeholder.Controller
}

// Synced implements source.
func (s *kubeSource) Synced() <-chan struct{} { return s.synced }

// Waiting implements source.
func (s *kubeSource) Waiting() []string {
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
func (s *kubeSource) Start(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return errors.Wrap(s.informers.Start(ctx), "cannot run informers") })
	g.Go(func() error { return errors.Wrap(s.Source.Start(ctx), "cannot watch objects") })
	g.Go(func() error { return s.read(ctx) })
	g.Go(func() error { return s.poll(ctx) })
	g.Go(func() error { return s.write(ctx) })
	return g.Wait()
}

// read reads Secrets and ConfigMaps once the objects that name them are known.
func (s *kubeSource) read(ctx context.Context) error {
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
	s.events.Translated(t.Gateway, t.SkippedRules)
	stale := 0
	for _, a := range t.Answers {
		if s.resync.RecordAnswer(a.Gateway, a.Revision, a.Digest) {
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
	f := &folder{store: store, log: log, exists: map[heldID]struct{}{}}
	return fileSource{files.NewSource(dir, s, kinds, f.apply, log)}, nil
}

// A folder applies the objects of a folder to a store. Named objects that are not in the folder do not
// exist.
type folder struct {
	store *index.Store
	log   logging.Logger

	// exists has the Secrets and ConfigMaps in the folder.
	exists map[heldID]struct{}
}

// A heldID identifies a Secret or ConfigMap.
type heldID struct {
	kind string
	types.NamespacedName
}

func (f *folder) apply(changed, removed []client.Object) {
	var changes []index.Change
	for _, o := range changed {
		if !f.hold(o, true) {
			changes = append(changes, index.Change{Object: o})
		}
	}
	for _, o := range removed {
		if !f.hold(o, false) {
			changes = append(changes, index.Change{Object: o, Deleted: true})
		}
	}
	if err := f.store.Apply(changes...); err != nil {
		f.log.Info("Cannot use an object; the others are used", "error", err)
	}
	for _, n := range f.store.Secrets() {
		if _, ok := f.exists[heldID{parse.KindSecret, n}]; !ok {
			f.holdSecret(n, nil)
		}
	}
	for _, n := range f.store.ConfigMaps() {
		if _, ok := f.exists[heldID{parse.KindConfigMap, n}]; !ok {
			f.holdConfigMap(n, nil)
		}
	}
}

// hold stores the state of a Secret or ConfigMap, which stays while the folder does. It reports whether
// the object is one.
func (f *folder) hold(o client.Object, exists bool) bool {
	n := client.ObjectKeyFromObject(o)
	mark := func(kind string) {
		f.exists[heldID{kind, n}] = struct{}{}
		if !exists {
			delete(f.exists, heldID{kind, n})
		}
	}
	switch o := o.(type) {
	case *corev1.Secret:
		mark(parse.KindSecret)
		if !exists {
			o = nil
		}
		f.holdSecret(n, o)
	case *corev1.ConfigMap:
		mark(parse.KindConfigMap)
		if !exists {
			o = nil
		}
		f.holdConfigMap(n, o)
	default:
		return false
	}
	return true
}

func (f *folder) holdSecret(n types.NamespacedName, o *corev1.Secret) {
	h := parse.ParseSecret(n, o, time.Now())
	f.store.SetSecret(n, &h)
}

func (f *folder) holdConfigMap(n types.NamespacedName, o *corev1.ConfigMap) {
	c, err := f.store.ReadConfigMap(n, o)
	if err != nil {
		f.log.Info("Cannot use an object; the others are used", "error", err)
	}
	f.store.SetConfigMap(n, &c)
}

// kindsOf returns the kinds of objects, Secrets and ConfigMaps. A folder for Envoy Gateway has more
// kinds.
func kindsOf(all map[string]client.Object, s *runtime.Scheme) (map[schema.GroupKind]bool, error) {
	out := map[schema.GroupKind]bool{
		corev1.SchemeGroupVersion.WithKind(parse.KindSecret).GroupKind():    true,
		corev1.SchemeGroupVersion.WithKind(parse.KindConfigMap).GroupKind(): true,
	}
	for _, o := range all {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot get the kind of %T", o)
		}
		out[gvk.GroupKind()] = true
	}
	return out, nil
}

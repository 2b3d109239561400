// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/files"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
)

// A source keeps a store up to date.
type source interface {
	// Start and go on until ctx ends.
	Start(ctx context.Context) error

	// Synced is closed when the store has all there was at the start.
	Synced() <-chan struct{}

	// Waiting says what keeps it from being synced, for people.
	Waiting() []string

	// Silence is how long what it reads from has been out of reach.
	Silence() time.Duration
}

func newSource(c *CLI, store *index.Store, log logging.Logger) (source, error) {
	if c.FromFiles != "" {
		return newFileSource(c.FromFiles, store, log)
	}
	cfg, err := restConfig(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	informers, err := index.NewCache(cfg)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of the Kubernetes API")
	}
	return &kubeSource{Source: index.NewSource(informers, store, log), informers: informers, contact: newContact(d.ServerVersion, log)}, nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		cfg, err := rest.InClusterConfig()
		return cfg, errors.Wrap(err, "cannot get Kubernetes config of the pod; outside of one give --kubeconfig or --from-files")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	return cfg, errors.Wrapf(err, "cannot read kubeconfig %q", kubeconfig)
}

// A kubeSource has its informers run with it.
type kubeSource struct {
	*index.Source
	*contact

	informers cache.Cache
}

// Start informers and source.
func (s *kubeSource) Start(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return errors.Wrap(s.informers.Start(ctx), "cannot run informers") })
	g.Go(func() error { return errors.Wrap(s.Source.Start(ctx), "cannot watch objects") })
	g.Go(func() error { return s.keep(ctx) })
	return g.Wait()
}

// A fileSource reads a folder. It waits for nothing but its first look.
type fileSource struct{ *files.Source }

// Waiting implements source.
func (fileSource) Waiting() []string { return nil }

// Silence implements source.
func (fileSource) Silence() time.Duration { return 0 }

func newFileSource(dir string, store *index.Store, log logging.Logger) (source, error) {
	s, err := index.Scheme()
	if err != nil {
		return nil, err
	}
	kinds, err := kindsOf(s)
	if err != nil {
		return nil, err
	}
	apply := func(changed, gone []client.Object) {
		var changes []index.Change
		for _, o := range changed {
			changes = append(changes, index.Change{Object: o})
		}
		for _, o := range gone {
			changes = append(changes, index.Change{Object: o, Gone: true})
		}
		if err := store.Apply(changes...); err != nil {
			log.Info("Cannot use an object; the others are", "error", err)
		}
	}
	return fileSource{files.NewSource(dir, s, kinds, apply, log)}, nil
}

// kindsOf what a store takes. A folder for Envoy Gateway has more.
func kindsOf(s *runtime.Scheme) (map[schema.GroupKind]bool, error) {
	out := map[schema.GroupKind]bool{}
	for _, o := range index.Kinds() {
		gvk, err := apiutil.GVKForObject(o, s)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot tell the kind of %T", o)
		}
		out[gvk.GroupKind()] = true
	}
	return out, nil
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	egv1alpha1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/gateway"
	"github.com/tailscale-gateway/tailscale-gateway/test/retry"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

const (
	// Ports of a replica.
	hooksPort   = 5005
	edsPort     = 5006
	observePort = 8080

	owner = "soak"

	// creators is the number of parallel writes.
	creators = 16

	// startLimit is how long each process may take to start, or to come back.
	startLimit = 3 * time.Minute
	stopLimit  = 30 * time.Second

	// poll is the interval of checks, and retryInterval that of repeated writes.
	poll          = 100 * time.Millisecond
	retryInterval = 500 * time.Millisecond
)

// An Environment holds all processes of a soak.
type Environment struct {
	model *wanted
	quiet []*target
	log   *os.File

	kube     client.Client
	api      *apiserver.Server
	gateway  *standalone.Gateway
	certs    *gateway.Certificates
	backends []*http.Server
	replicas [2]*replica
}

// start starts all processes, and waits until all routes answer.
func start(ctx context.Context, o Options) (*Environment, error) {
	w := &Environment{model: newModel(o.Seed, o.Routes, max(o.Routes/4, 1))}
	for i := range quietTargets {
		w.quiet = append(w.quiet, &target{name: fmt.Sprintf("quiet-%d", i), addresses: []string{fmt.Sprintf("192.0.2.%d", 2+i)}})
	}
	if err := w.start(ctx, o); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

func (w *Environment) start(ctx context.Context, o Options) error {
	if err := os.MkdirAll(o.Logs, 0o755); err != nil {
		return errors.Wrap(err, "cannot create the folder of logs")
	}
	var err error
	if w.log, err = os.Create(filepath.Join(o.Logs, "soak.log")); err != nil {
		return errors.Wrap(err, "cannot create a log file")
	}
	if err := w.startAPIServer(ctx); err != nil {
		return err
	}
	if err := w.create(ctx); err != nil {
		return err
	}
	kinds := func(names ...string) (out []schema.GroupVersionKind) {
		for _, n := range names {
			out = append(out, gatewayv1alpha1.SchemeGroupVersion.WithKind(n))
		}
		return out
	}
	kubeconfig, err := w.api.WriteKubeconfig()
	if err != nil {
		return err
	}
	if w.certs, err = gateway.NewCertificates(filepath.Dir(kubeconfig), standalone.ServiceAddress().String()); err != nil {
		return err
	}
	if err := w.apply(ctx, w.certs.Secret); err != nil {
		return err
	}
	w.gateway, err = standalone.Start(ctx, standalone.Options{
		ExtensionSecret:  client.ObjectKeyFromObject(w.certs.Secret),
		ExtensionAddress: netip.AddrPortFrom(standalone.ServiceAddress(), hooksPort),
		Backends:         kinds(gatewayv1alpha1.TailscaleServicesKind, gatewayv1alpha1.TailscaleEndpointsKind),
		Policies:         kinds(gatewayv1alpha1.TailscaleRevisionKind),
		Kubeconfig:       w.api.Kubeconfig,
		OwnEnvoy:         true,
		Log:              w.log,
	})
	if err != nil {
		return err
	}
	if err := w.serveBackends(ctx); err != nil {
		return err
	}
	for i := range w.replicas {
		if w.replicas[i], err = w.newReplica(ctx, i, o.Program); err != nil {
			return err
		}
		if err := w.replicas[i].start(ctx); err != nil {
			return err
		}
	}
	if err := (&leader{Environment: w}).lead(ctx); err != nil {
		return err
	}
	if err := w.put(ctx, gateway.Gateway()); err != nil {
		return err
	}
	return w.gateway.StartEnvoy(ctx)
}

func (w *Environment) startAPIServer(ctx context.Context) error {
	crds, err := standalone.CRDs(ctx)
	if err != nil {
		return err
	}
	root, err := apiserver.Root()
	if err != nil {
		return err
	}
	crds = append(crds, filepath.Join(root, charts.ExtensionCRDs))
	if w.api, err = apiserver.Start(ctx, apiserver.Options{CRDs: crds, Composites: true, Log: w.log}); err != nil {
		return err
	}
	scheme, err := parse.Scheme()
	if err != nil {
		return err
	}
	if err := egv1alpha1.AddToScheme(scheme); err != nil {
		return errors.Wrap(err, "cannot add Envoy Gateway's kinds to the scheme")
	}
	w.kube, err = client.New(w.api.Config, client.Options{Scheme: scheme})
	return errors.Wrap(err, "cannot create a client of the API server")
}

// create creates all objects except for the Gateway.
func (w *Environment) create(ctx context.Context) error {
	objects := []client.Object{egressPods(), w.model.proxySet()}
	for _, t := range append(w.model.targets, w.quiet...) {
		objects = append(objects, t.objects()...)
	}
	for i := range quietRoutes {
		objects = append(objects, w.quietRoute(i).object())
	}
	for _, r := range w.model.routes {
		objects = append(objects, r.object())
		if r.connections > 0 {
			objects = append(objects, r.policy())
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(creators)
	for _, o := range objects {
		g.Go(func() error { return w.apply(ctx, o) })
	}
	return g.Wait()
}

// quietRoute returns a route that does not change.
func (w *Environment) quietRoute(i int) *route {
	return &route{name: fmt.Sprintf("quiet-%d", i), rules: []*target{w.quiet[i%len(w.quiet)]}}
}

func (w *Environment) serveBackends(ctx context.Context) error {
	for _, port := range []int{gateway.BackendPort, remotePort} {
		l, err := w.gateway.Listen(ctx, "tcp", fmt.Sprintf("0.0.0.0:%d", port))
		if err != nil {
			return errors.Wrap(err, "cannot listen for backends")
		}
		s := gateway.Backend()
		w.backends = append(w.backends, s)
		go func() { _ = s.Serve(l) }() // Ends with Close.
	}
	return nil
}

// put writes objects, and repeats the writes while the API server is away.
func (w *Environment) put(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := w.retry(ctx, func() error { return w.apply(ctx, o) }); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes objects, and repeats likewise.
func (w *Environment) remove(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		err := w.retry(ctx, func() error {
			return errors.Wrapf(client.IgnoreNotFound(w.kube.Delete(ctx, o)), "cannot delete %T %s", o, o.GetName())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// retry repeats fn until it succeeds.
func (w *Environment) retry(ctx context.Context, fn func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return retry.Until(ctx, retryInterval, func(context.Context) error { return fn() })
}

// apply applies a whole object, except for its status.
func (w *Environment) apply(ctx context.Context, o client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return errors.Wrap(err, "cannot convert an object")
	}
	delete(content, "status")
	gvk, err := apiutil.GVKForObject(o, w.kube.Scheme())
	if err != nil {
		return errors.Wrapf(err, "cannot determine the kind of %T", o)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return errors.Wrapf(w.kube.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner), client.ForceOwnership), "cannot apply %s %s", gvk.Kind, o.GetName())
}

// stop stops all processes.
func (w *Environment) stop() error {
	var errs []error
	for _, r := range w.replicas {
		if r != nil {
			errs = append(errs, r.close())
		}
	}
	if w.gateway != nil {
		errs = append(errs, w.gateway.Stop())
	}
	for _, b := range w.backends {
		errs = append(errs, errors.Wrap(b.Close(), "cannot stop a backend"))
	}
	if w.api != nil {
		errs = append(errs, w.api.Stop())
	}
	if w.log != nil {
		errs = append(errs, errors.Wrap(w.log.Close(), "cannot close the log file"))
	}
	return errors.Join(errs...)
}

// until polls until check returns nil. It returns the last error when ctx ends.
func until(ctx context.Context, check func(context.Context) error) error {
	return retry.Until(ctx, poll, check)
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/provider"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	// pollInterval of all managed resources.
	pollInterval = time.Second

	// listMaxAge of shared lists. It must be shorter than pollInterval, so that drift is noticed.
	listMaxAge = 500 * time.Millisecond

	// reconcileRate is also the number of parallel reconciles of a kind. A retried call occupies
	// its reconcile for seconds.
	reconcileRate = 200
)

// images of the provider's proxies.
var images = proxy.Images{Tailscale: "tailscale:test", Agent: "agent:test"}

// shared holds the objects that all cases share.
var shared struct {
	// kube reads and writes the API server directly.
	kube client.Client
	// cache follows the API server, so that reads are cheap.
	cache client.Reader
	audit *audit
	// config connects to the API server as an administrator, provider as the provider.
	config, provider *rest.Config
	// secretBytes is the number of bytes that the provider has received for its cache of Secrets.
	secretBytes atomic.Int64
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "integration: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// run starts the shared processes, runs the cases and returns the audit's verdict.
func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	mcs, err := apiserver.ModuleDir(ctx, "sigs.k8s.io/mcs-api")
	if err != nil {
		return 1, err
	}
	s, err := apiserver.Start(ctx, apiserver.Options{CRDs: []string{filepath.Join(mcs, "config", "crd")}, Composites: true, Controllers: append(apiserver.DeletionControllers(), "statefulset-controller")})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()

	stopped := make(chan error, 1)
	if err := startProvider(ctx, s.Config, stopped); err != nil {
		return 1, err
	}
	code = m.Run()
	cancel()
	err = errors.Wrap(<-stopped, "cannot run controllers")
	return code, errors.Join(err, shared.audit.verdict())
}

// startProvider runs the provider until the context ends.
func startProvider(ctx context.Context, cfg *rest.Config, stopped chan<- error) error {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, mcsv1beta1.Install, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return errors.Wrap(err, "cannot build scheme")
		}
	}
	kube, err := client.New(cfg, client.Options{Scheme: s})
	if err != nil {
		return errors.Wrap(err, "cannot create a client")
	}
	c, err := cache.New(cfg, cache.Options{Scheme: s})
	if err != nil {
		return errors.Wrap(err, "cannot create a cache")
	}
	shared.kube, shared.cache, shared.audit, shared.config = kube, c, newAudit(), cfg
	if err := shared.audit.watch(ctx, c, s); err != nil {
		return err
	}
	if shared.provider, err = asProvider(ctx, kube, cfg); err != nil {
		return err
	}
	shared.provider.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		return secretCounter{RoundTripper: transport, bytes: &shared.secretBytes}
	})
	ended := make(chan error, 2)
	go func() { ended <- c.Start(ctx) }()
	go func() {
		ended <- provider.Run(ctx, provider.Options{
			Debug: true, Log: shared.audit, RESTConfig: shared.provider,
			Poll: pollInterval, Sync: time.Hour, PollStateMetric: time.Minute,
			MaxReconcileRate: reconcileRate, APIRate: 1000, APIBurst: 1000, ListMaxAge: listMaxAge,
			Namespace:          metav1.NamespaceSystem,
			Images:             images,
			AllowedHosts:       []string{"127.0.0.1:*"},
			ManagementPolicies: true, MetricsAddress: "0", HealthAddress: "0", ProfileAddress: "0",
		})
	}()
	go func() { stopped <- errors.Join(<-ended, <-ended) }()
	if !c.WaitForCacheSync(ctx) {
		return errors.New("cannot fill caches")
	}
	return nil
}

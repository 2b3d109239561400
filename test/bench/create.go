// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

const (
	// apiLatencyMS is how long a call to a distant API takes.
	apiLatencyMS = 50

	// goalCreateRatio is how much longer than the bare client the provider may take.
	goalCreateRatio = 3

	createLimit = 5 * time.Minute
)

// The limits of both the provider and the bare client: the provider's defaults.
const (
	apiRate     = 20
	apiBurst    = 60
	concurrency = 100
)

// create measures how long it takes to create many services at once, compared with a client that
// makes the same calls without Kubernetes.
func (c *cli) create(ctx context.Context, env *harness.Env) (rs []Result, err error) {
	tailnet, err := harness.NewTailnet()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tailnet.Close()) }()
	url, err := tailnet.Serve(nil)
	if err != nil {
		return nil, err
	}
	if err := tailnet.SetFaults(tailnetsim.Fault{LatencyMS: apiLatencyMS}); err != nil {
		return nil, err
	}
	if err := env.Configure(ctx, "bench", "bench-cluster", url); err != nil {
		return nil, err
	}
	p, err := env.StartProvider("provider", "provider", harness.AllowTailnets, "--namespace=bench",
		"--api-rate="+strconv.Itoa(apiRate), "--api-burst="+strconv.Itoa(apiBurst), "--max-reconcile-rate="+strconv.Itoa(concurrency))
	if err != nil {
		return nil, err
	}
	if err := warm(ctx, env, tailnet, p); err != nil {
		return nil, err
	}

	progress("create: %d VIPServices by the provider", c.Creates)
	tailnet.ResetCalls()
	took, err := c.createByProvider(ctx, env, p)
	if err != nil {
		return nil, err
	}
	progress("create: calls of the provider: %v", tailnet.Calls())
	if err := p.Stop(); err != nil {
		return nil, err
	}

	progress("create: %d services by the bare client", c.Creates)
	tailnet.ResetCalls()
	bare, err := c.createBare(ctx, url)
	if err != nil {
		return nil, err
	}
	progress("create: calls of the bare client: %v", tailnet.Calls())
	return []Result{compared("provider.create200_p95_ratio", percentile(took, 95).Seconds(), percentile(bare, 95).Seconds(), "s", goalCreateRatio)}, nil
}

// warm waits until the provider works, and then until its burst of calls is available again.
func warm(ctx context.Context, env *harness.Env, tailnet *harness.Tailnet, p *harness.Provider) error {
	progress("waiting for the provider")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, err := env.Track(ctx, harness.Kind(v1alpha1.VIPServiceKind))
	if err != nil {
		return err
	}
	o := vipService("bench", "warm")
	if err := env.Kube.Create(ctx, o); err != nil {
		return errors.Wrap(err, "cannot create the first VIPService")
	}
	err = harness.Eventually(ctx, createLimit, "the first VIPService", func(context.Context) error {
		return errors.Join(p.Running(), t.AllReady(1))
	})
	if err != nil {
		return err
	}
	if err := env.Kube.Delete(ctx, o); err != nil {
		return errors.Wrap(err, "cannot delete the first VIPService")
	}
	err = harness.Eventually(ctx, createLimit, "the deletion of the first VIPService", func(context.Context) error {
		if n := len(t.States()) + len(tailnet.State().Services); n > 0 {
			return errors.Errorf("%d of its objects still exist", n)
		}
		return p.Running()
	})
	if err != nil {
		return err
	}
	return harness.Pause(ctx, apiBurst/apiRate*time.Second)
}

func vipService(namespace, name string) *unstructured.Unstructured {
	return harness.Object(v1alpha1.VIPServiceKind, namespace, name, map[string]any{
		"name":  "svc:" + name,
		"ports": []any{"tcp:443"},
		"tags":  []any{"tag:k8s"},
	})
}

// createByProvider returns how long after its creation each object was Ready.
func (c *cli) createByProvider(ctx context.Context, env *harness.Env, p *harness.Provider) ([]time.Duration, error) {
	t, err := env.Track(ctx, harness.Kind(v1alpha1.VIPServiceKind))
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	created := map[string]time.Time{}
	g, gctx := errgroup.WithContext(ctx)
	for i := range c.Creates {
		g.Go(func() error {
			o := vipService("bench", fmt.Sprintf("created-%d", i))
			if err := env.Kube.Create(gctx, o); err != nil {
				return errors.Wrap(err, "cannot create a VIPService")
			}
			mu.Lock()
			defer mu.Unlock()
			created[o.GetNamespace()+"/"+o.GetName()] = time.Now()
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	err = harness.Eventually(ctx, createLimit, "all VIPServices", func(context.Context) error {
		return errors.Join(p.Running(), t.AllReady(c.Creates))
	})
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for k, s := range t.States() {
		took = append(took, s.ReadyAt.Sub(created[k]))
	}
	return took, nil
}

// createBare returns how long after the start each service was created and listed, which is the
// minimum that the provider does.
func (c *cli) createBare(ctx context.Context, url string) ([]time.Duration, error) {
	client, err := tailscale.NewPool(tailscale.Options{Rate: apiRate, Burst: apiBurst, Metrics: tailscale.NewMetrics()}).Client("bare", harness.ClientConfig(url))
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a client of the API")
	}
	// The provider is also logged in before its measurement begins.
	if _, err := client.Services().Services(ctx, tailscale.AtMost(time.Minute)); err != nil {
		return nil, errors.Wrap(err, "cannot list services")
	}
	if err := harness.Pause(ctx, time.Second); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var took []time.Duration
	begin := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	for i := range c.Creates {
		g.Go(func() error {
			if err := makeService(ctx, client, fmt.Sprintf("svc:bare-%d", i)); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(begin))
			return nil
		})
	}
	return took, g.Wait()
}

func makeService(ctx context.Context, client *tailscale.Client, name string) error {
	if _, err := client.Services().Service(ctx, name); err != nil && !tailscale.IsNotFound(err) {
		return errors.Wrap(err, "cannot get a service")
	}
	if _, err := client.Services().PutService(ctx, tailscale.Service{Name: name, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}); err != nil {
		return errors.Wrap(err, "cannot write a service")
	}
	_, err := client.Services().Services(ctx, tailscale.AtMost(time.Minute))
	return errors.Wrap(err, "cannot list services")
}

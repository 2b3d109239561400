// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

const (
	// pollInterval is the provider's default.
	pollInterval = time.Minute

	// goalLists is one list of services and one of devices.
	goalLists = 2

	// goalOthers bounds the other calls, for any number of objects.
	goalOthers = 10

	// goalMemory is in MiB.
	goalMemory = 150

	fillLimit = 15 * time.Minute
)

// rest measures the cost of many objects that do not change.
func (c *cli) rest(ctx context.Context, env *harness.Env) (rs []Result, err error) {
	tailnet, err := harness.NewTailnet()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tailnet.Close()) }()
	url, err := tailnet.Serve(nil)
	if err != nil {
		return nil, err
	}
	if err := env.Configure(ctx, "bench", "bench-cluster", url); err != nil {
		return nil, err
	}
	p, err := env.StartProvider("provider", "provider", harness.AllowTailnets, "--namespace=bench")
	if err != nil {
		return nil, err
	}
	if err := c.fill(ctx, env, tailnet, p); err != nil {
		return nil, err
	}

	progress("rest: letting one poll pass")
	if err := harness.Pause(ctx, pollInterval); err != nil {
		return nil, err
	}
	progress("rest: counting calls for %d polls", c.Polls)
	tailnet.ResetCalls()
	if err := harness.Pause(ctx, time.Duration(c.Polls)*pollInterval); err != nil {
		return nil, err
	}
	if err := p.Running(); err != nil {
		return nil, err
	}
	calls := tailnet.Counted()
	progress("rest: calls: %v", calls.ByName)
	mem, err := p.Memory()
	if err != nil {
		return nil, err
	}
	polls := float64(c.Polls)
	return []Result{
		plain("provider.list_calls_per_poll", float64(calls.Lists)/polls, "calls", goalLists),
		plain("provider.other_calls_per_poll", float64(calls.Others)/polls, "calls", goalOthers),
		plain("provider.rss_mb", mem.RSS, "MiB", goalMemory),
		plain("provider.rss_peak_mb", mem.Peak, "MiB", goalMemory),
	}, p.Stop()
}

// fill creates the objects and waits until all are ready.
func (c *cli) fill(ctx context.Context, env *harness.Env, tailnet *harness.Tailnet, p *harness.Provider) error {
	progress("rest: creating %d VIPServices and %d Devices", c.Objects, c.Objects)
	var objects []*unstructured.Unstructured
	for i := range c.Objects {
		id, err := tailnet.Join(tailnetsim.Puppet{Hostname: fmt.Sprintf("node-%d", i), Tags: []string{"tag:k8s"}})
		if err != nil {
			return errors.Wrap(err, "cannot add a device")
		}
		objects = append(objects,
			vipService("bench", fmt.Sprintf("rest-%d", i)),
			harness.Object(v1alpha1.DeviceKind, "bench", fmt.Sprintf("node-%d", i), map[string]any{"nodeID": id}),
		)
	}
	services, err := env.Track(ctx, harness.Kind(v1alpha1.VIPServiceKind))
	if err != nil {
		return err
	}
	devices, err := env.Track(ctx, harness.Kind(v1alpha1.DeviceKind))
	if err != nil {
		return err
	}
	if err := env.Create(ctx, 16, objects); err != nil {
		return err
	}
	progress("rest: waiting until all are ready")
	return harness.Eventually(ctx, fillLimit, "objects at rest", func(context.Context) error {
		return errors.Join(p.Running(), services.AllReady(c.Objects), devices.AllReady(c.Objects))
	})
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package swarm

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

// lost compares the records in the tailnet with the attached clusters.
func (s *swarm) lost() []string {
	v := registry.View{}
	for _, svc := range s.tailnet.State().Services {
		v.Services = append(v.Services, tailscale.Service{Name: svc.Name, Addrs: svc.Addrs, Annotations: svc.Annotations, Ports: svc.Ports, Tags: svc.Tags})
	}
	members, ignored := v.Members(service)
	var records, out []string
	for _, m := range members {
		records = append(records, m.Cluster)
	}
	attached := s.attached()
	for _, id := range attached {
		if !slices.Contains(records, id) {
			out = append(out, id+" has no record")
		}
	}
	for _, id := range records {
		if !slices.Contains(attached, id) {
			out = append(out, id+" has a record")
		}
	}
	for _, name := range ignored {
		out = append(out, name+" is nobody's record")
	}
	return out
}

// shared returns the addresses of the shared service, none if there is none.
func (s *swarm) shared() []string {
	for _, svc := range s.tailnet.State().Services {
		if svc.Name == service {
			return svc.Addrs
		}
	}
	return nil
}

// restore deletes the shared service outside of the providers while a cluster attaches.
func (s *swarm) restore(ctx context.Context, r *Report) error {
	i := slices.IndexFunc(s.clusters, func(c *cluster) bool { return !c.attached })
	previous := s.shared()
	if i < 0 || len(previous) == 0 {
		return errors.New("no cluster is detached, or none attached")
	}
	c := s.clusters[i]
	s.Progress("swarm: deleting the shared service while %s attaches", c.id)
	url, err := s.tailnet.Serve(nil)
	if err != nil {
		return err
	}
	hand, err := tailscale.NewPool(tailscale.Options{Rate: 10, Burst: 10, Metrics: tailscale.NewMetrics()}).Client("hand", harness.ClientConfig(url))
	if err != nil {
		return errors.Wrap(err, "cannot create a client of the API")
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.set(gctx, true) })
	g.Go(func() error {
		return errors.Wrap(hand.Services().DeleteService(gctx, service), "cannot delete the shared service")
	})
	if err := g.Wait(); err != nil {
		return err
	}
	deleted := time.Now()
	err = harness.Eventually(ctx, settleLimit, "the shared service to come back", func(context.Context) error {
		if len(s.shared()) == 0 {
			return errors.New("the shared service does not exist")
		}
		return s.running()
	})
	if err != nil {
		return err
	}
	r.Restored = time.Since(deleted)
	r.Readdressed = s.shared()[0] != previous[0]
	return harness.Eventually(ctx, settleLimit, "the cluster to be attached", func(context.Context) error {
		return s.tracker.AllReady(len(s.attached()))
	})
}

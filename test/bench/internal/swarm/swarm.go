// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package swarm runs many clusters that share one Tailscale Service: a provider process for each,
// with a wrong clock, through an API that is slow and loses responses. It counts violations. The
// goals are in the caller.
package swarm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

const (
	// service that all clusters share.
	service = "svc:shared"

	// maxSkew of a cluster's clock, ahead or behind.
	maxSkew = time.Hour

	// maxLatencyMS of a call, and the share of responses that are lost.
	maxLatencyMS = 300
	lostReplies  = 0.05

	// maxStay is the longest time between two changes of a cluster.
	maxStay = 20 * time.Second

	// crashes is the share of a cluster's changes in which its provider is killed.
	crashes = 0.1

	// settleLimit is how long clusters may take for a change: to detach takes registry.Pause at
	// least.
	settleLimit = registry.Pause + 3*time.Minute
)

// Options of a run.
type Options struct {
	// Members is the number of clusters, four at least.
	Members int
	// Duration for which they attach and detach.
	Duration time.Duration
	// Poll interval of the providers.
	Poll time.Duration
	// Seed of random choices. The order of calls still differs between runs.
	Seed uint64
	// Progress prints progress.
	Progress func(format string, args ...any)
}

// A Report holds the results of a run.
type Report struct {
	// Lost are attached clusters without a record at rest, and records of clusters that are not
	// attached.
	Lost []string
	// WritesAtRest is the number of write requests in two polls at rest.
	WritesAtRest int
	// Foreign are writes of another cluster's record.
	Foreign []string
	// Restored is how long the shared service was missing after its deletion outside of the
	// providers.
	Restored time.Duration
	// Readdressed reports that the service came back with another IPv4 address.
	Readdressed bool
	// Leftovers are services that exist when all clusters are detached.
	Leftovers []string
}

type swarm struct {
	Options

	env      *harness.Env
	tailnet  *harness.Tailnet
	tracker  *harness.Tracker
	audit    *audit
	clusters []*cluster
}

// Run runs a swarm against an empty API server. It needs the program "member".
func Run(ctx context.Context, env *harness.Env, o Options) (r *Report, err error) {
	tailnet, err := harness.NewTailnet()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tailnet.Close()) }()
	err = tailnet.SetFaults(
		tailnetsim.Fault{LatencyMaxMS: maxLatencyMS, Probability: lostReplies, DropReply: true, Seed: o.Seed},
		tailnetsim.Fault{LatencyMaxMS: maxLatencyMS, Seed: o.Seed + 1},
	)
	if err != nil {
		return nil, err
	}
	s := &swarm{Options: o, env: env, tailnet: tailnet, audit: newAudit()}
	if s.tracker, err = env.Track(ctx, harness.Kind(v1alpha1.VIPServiceKind)); err != nil {
		return nil, err
	}
	for i := range o.Members {
		c, err := s.newCluster(ctx, i)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot set up cluster %d", i)
		}
		s.clusters = append(s.clusters, c)
	}
	o.Progress("swarm: %d providers run, seed %d", len(s.clusters), o.Seed)
	r = &Report{}
	for _, step := range []func(context.Context, *Report) error{s.churn, s.rest, s.restore, s.leave} {
		if err := step(ctx, r); err != nil {
			return r, err
		}
	}
	r.Foreign = s.audit.violations()
	return r, nil
}

// churn lets all clusters attach and detach at random, then settle.
func (s *swarm) churn(ctx context.Context, _ *Report) error {
	s.Progress("swarm: attaching and detaching for %s", s.Duration)
	end := time.Now().Add(s.Duration)
	var mu sync.Mutex
	changes := 0
	g, gctx := errgroup.WithContext(ctx)
	for _, c := range s.clusters {
		g.Go(func() error {
			for time.Now().Before(end) {
				if err := harness.Pause(gctx, time.Duration(c.dice.Int64N(int64(maxStay)))); err != nil {
					return err
				}
				if err := c.toggle(gctx); err != nil {
					return errors.Wrapf(err, "cluster %s", c.id)
				}
				mu.Lock()
				changes++
				mu.Unlock()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	s.Progress("swarm: %d changes", changes)
	// The next steps need attached and detached clusters.
	return s.each(ctx, s.clusters, func(ctx context.Context, i int, c *cluster) error {
		if i%4 < 2 {
			return c.set(ctx, i%4 == 0)
		}
		return c.set(ctx, c.dice.IntN(2) == 0)
	})
}

// rest waits until all changes are complete, and compares.
func (s *swarm) rest(ctx context.Context, r *Report) error {
	attached := s.attached()
	s.Progress("swarm: coming to rest with %d clusters attached", len(attached))
	err := harness.Eventually(ctx, settleLimit, "the clusters to settle", func(context.Context) error {
		return errors.Join(s.running(), s.tracker.AllReady(len(attached)))
	})
	if err != nil {
		return err
	}
	// The provider repairs the effects of a lost response within a poll.
	err = harness.Eventually(ctx, 3*s.Poll, "the records", func(context.Context) error {
		if lost := s.lost(); len(lost) > 0 {
			return errors.Errorf("%v", lost)
		}
		return nil
	})
	if ctx.Err() != nil {
		return err
	}
	if err == nil {
		err = s.quiet(ctx, r)
	} else {
		s.Progress("swarm: %v", err)
		err = nil
	}
	r.Lost = s.lost()
	return err
}

// quiet counts the writes of the first poll without writes, or of the third.
func (s *swarm) quiet(ctx context.Context, r *Report) error {
	for range 3 {
		previous := s.audit.writes()
		if err := harness.Pause(ctx, s.Poll); err != nil {
			return err
		}
		if s.audit.writes() == previous {
			break
		}
	}
	previous := s.audit.writes()
	if err := harness.Pause(ctx, 2*s.Poll); err != nil {
		return err
	}
	r.WritesAtRest = s.audit.writes() - previous
	return nil
}

// leave detaches all clusters, and records the services that remain in the tailnet.
func (s *swarm) leave(ctx context.Context, r *Report) error {
	s.Progress("swarm: detaching all")
	err := s.each(ctx, s.clusters, func(ctx context.Context, _ int, c *cluster) error { return c.set(ctx, false) })
	if err != nil {
		return err
	}
	for _, v := range s.tailnet.State().Services {
		r.Leftovers = append(r.Leftovers, v.Name)
	}
	return nil
}

func (s *swarm) each(ctx context.Context, cs []*cluster, fn func(ctx context.Context, i int, c *cluster) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, c := range cs {
		g.Go(func() error { return errors.Wrapf(fn(ctx, i, c), "cluster %s", c.id) })
	}
	return g.Wait()
}

// attached returns the IDs of the clusters that are to be attached.
func (s *swarm) attached() []string {
	var out []string
	for _, c := range s.clusters {
		if c.attached {
			out = append(out, c.id)
		}
	}
	return out
}

// running returns an error if a provider has ended.
func (s *swarm) running() error {
	for _, c := range s.clusters {
		if err := c.provider.Running(); err != nil {
			return errors.Wrapf(err, "cluster %s", c.id)
		}
	}
	return nil
}

func (s *swarm) newCluster(ctx context.Context, i int) (*cluster, error) {
	id := fmt.Sprintf("cluster-%02d", i)
	dice := rand.New(rand.NewPCG(s.Seed, uint64(i))) //nolint:gosec // Random choices of a test.
	url, err := s.tailnet.Serve(s.audit.face(id))
	if err != nil {
		return nil, err
	}
	// A node that has just gone appears alive by the API's clock, and dead by a clock that is
	// ahead.
	node, err := s.tailnet.Join(tailnetsim.Puppet{Hostname: id, Tags: []string{"tag:k8s"}, Offline: i%3 == 2})
	if err != nil {
		return nil, errors.Wrap(err, "cannot add a device")
	}
	c := &cluster{swarm: s, id: id, dice: dice, skew: time.Duration(dice.Int64N(int64(2*maxSkew))) - maxSkew}
	if err := s.env.Configure(ctx, id, id, url); err != nil {
		return nil, err
	}
	if err := c.makeMachine(ctx, node); err != nil {
		return nil, err
	}
	return c, c.start()
}

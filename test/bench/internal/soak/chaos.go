// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"syscall"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

// An outage is a time in which a process or its packets were away.
type outage struct {
	load.Span

	name string
}

// A step makes a process fail and recover.
type step struct {
	name string
	// early reports that the step ends processes whose growth is measured later.
	early  bool
	action func(c *chaos, ctx context.Context) error
}

func steps() []step {
	return []step{
		{"serving replica killed", true, (*chaos).killServing},
		{"serving replica's packets dropped", false, (*chaos).dropServing},
		{"Envoy killed while a replica is down", true, (*chaos).killEnvoy},
		{"Envoy Gateway restarted", false, (*chaos).restartEnvoyGateway},
		{"first replica rolled", false, (*chaos).rollFirst},
		{"API server killed", false, (*chaos).killAPIServer},
		{"serving replica frozen", false, (*chaos).freezeServing},
		{"first replica killed", false, (*chaos).killFirst},
		{"last replica's packets dropped", false, (*chaos).dropLast},
	}
}

// chaos runs one step after the other.
type chaos struct {
	*Environment

	load              *traffic
	routes, endpoints *markers
	say               func(format string, args ...any)

	// outage is how long packets are dropped, and twice the time that a process is frozen. down is how
	// long a killed process stays down.
	outage, down time.Duration
	// calm is the pause after each step.
	calm time.Duration

	outages []outage
	// recovered is the maximum time from the start of an Envoy until all quiet routes answered.
	recovered time.Duration
}

// run runs steps until ctx ends. After a time it no longer ends the processes whose growth is
// measured: the last replica and Envoy.
func (c *chaos) run(ctx context.Context, early time.Time) error {
	for i := 0; ; i++ {
		s := steps()[i%len(steps())]
		if s.early && time.Now().After(early) {
			continue
		}
		if !pause(ctx, c.calm) {
			return nil
		}
		c.say("%s", s.name)
		began := time.Now()
		// A step under way completes before the end.
		if err := s.action(c, context.WithoutCancel(ctx)); err != nil {
			return errors.Wrap(err, s.name)
		}
		c.outages = append(c.outages, outage{Span: load.Span{Began: began, Ended: time.Now()}, name: s.name})
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
}

// settle waits until changes after a step are served.
func (c *chaos) settle(ctx context.Context) error {
	at := time.Now()
	limited, cancel := context.WithTimeout(ctx, markerLimit)
	defer cancel()
	err := until(limited, func(context.Context) error {
		if c.routes.since(at) == 0 || c.endpoints.since(at) == 0 {
			return errors.New("changes are still not served")
		}
		return nil
	})
	if err == nil {
		c.say("changes are served again after %s", time.Since(at).Round(10*time.Millisecond))
	}
	return ended(ctx, err)
}

// pause waits, and reports whether ctx is still active.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (c *chaos) first() *replica { return c.replicas[0] }
func (c *chaos) last() *replica  { return c.replicas[len(c.replicas)-1] }

func (c *chaos) killServing(ctx context.Context) error {
	r, err := c.serving(ctx)
	if err != nil {
		return err
	}
	return c.kill(ctx, r)
}

func (c *chaos) killFirst(ctx context.Context) error { return c.kill(ctx, c.first()) }

// kill kills a replica, and starts it again.
func (c *chaos) kill(ctx context.Context, r *replica) error {
	if err := r.running().Kill(); err != nil {
		return err
	}
	pause(ctx, c.down)
	return r.start(ctx)
}

// rollFirst ends a replica as a rollout does.
func (c *chaos) rollFirst(ctx context.Context) error {
	if err := c.first().running().Stop(stopLimit); err != nil {
		return err
	}
	return c.first().start(ctx)
}

func (c *chaos) freezeServing(ctx context.Context) error {
	r, err := c.serving(ctx)
	if err != nil {
		return err
	}
	if err := r.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, c.outage/2)
	return r.signal(syscall.SIGCONT)
}

func (c *chaos) dropServing(ctx context.Context) error {
	r, err := c.serving(ctx)
	if err != nil {
		return err
	}
	return c.drop(ctx, r)
}

func (c *chaos) dropLast(ctx context.Context) error { return c.drop(ctx, c.last()) }

// drop drops the packets of a replica without closing its connections.
func (c *chaos) drop(ctx context.Context, r *replica) error {
	if err := r.pod.Drop(); err != nil {
		return err
	}
	pause(ctx, c.outage)
	return r.pod.Pass()
}

// killEnvoy restarts Envoy while the replica is down that Envoy would connect to.
func (c *chaos) killEnvoy(ctx context.Context) error {
	if err := c.last().running().Kill(); err != nil {
		return err
	}
	pause(ctx, c.down)
	err := c.load.During(func() error {
		if err := c.gateway.KillEnvoy(); err != nil {
			return err
		}
		began := time.Now()
		if err := c.gateway.StartEnvoy(ctx); err != nil {
			return err
		}
		if err := c.answers(ctx); err != nil {
			return err
		}
		c.recovered = max(c.recovered, time.Since(began))
		return nil
	})
	if err != nil {
		return err
	}
	return c.last().start(ctx)
}

// answers waits until all quiet routes answer.
func (w *Environment) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c := w.gateway.Client()
	defer c.CloseIdleConnections()
	for i := range quietRoutes {
		r := w.quietRoute(i)
		if err := until(ctx, func(ctx context.Context) error { return w.probe(ctx, c, r, r.rules[0]) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *chaos) restartEnvoyGateway(ctx context.Context) error { return c.gateway.Restart(ctx) }

func (c *chaos) killAPIServer(ctx context.Context) error {
	if err := c.api.Crash(); err != nil {
		return err
	}
	pause(ctx, c.down)
	return c.api.Restart(ctx)
}

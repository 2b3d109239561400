// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hops

import (
	"context"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
)

// messageBytes is the size of a request and of its response.
const messageBytes = 256

// A Cost is the cost of a path to the target. All values are medians of rounds.
type Cost struct {
	// Request is the time of a request and its response on an open connection.
	Request time.Duration

	// Connect is the time from dialing until the first response.
	Connect time.Duration

	// Agent, Proxy and Peer are the processor time that each takes for a request while several
	// connections are busy.
	Agent, Proxy, Peer time.Duration
}

// An Amount is the size of a measurement.
type Amount struct {
	// Rounds of all paths in turns, so that other load on the machine affects all.
	Rounds int

	// Requests of one round, one after another, and the same number by all Workers.
	Requests int

	// Connections of one round, one after another.
	Connections int

	// Workers send requests in parallel, each on a separate connection.
	Workers int
}

// Costs are the costs of paths to one target, each one hop longer than the previous one.
type Costs struct {
	// Direct goes to the target over the loopback.
	Direct Cost

	// Tailnet goes through both tailscaled: the client dials as the agent does.
	Tailnet Cost

	// Agent goes through the agent, too.
	Agent Cost
}

// Measure measures each path.
func (p *Path) Measure(ctx context.Context, a Amount) (Costs, error) {
	dials := []dialFn{p.dialTarget, p.dialProxy, p.dialAgent}
	costs := make([][]Cost, len(dials))
	for range a.Rounds {
		for i, dial := range dials {
			c, err := p.cost(ctx, dial, a)
			if err != nil {
				return Costs{}, err
			}
			costs[i] = append(costs[i], c)
		}
	}
	return Costs{Direct: middle(costs[0]), Tailnet: middle(costs[1]), Agent: middle(costs[2])}, nil
}

type dialFn func(context.Context) (net.Conn, error)

// cost measures one path, in one round.
func (p *Path) cost(ctx context.Context, dial dialFn, a Amount) (Cost, error) {
	requests, err := keep(ctx, dial, a.Requests)
	if err != nil {
		return Cost{}, err
	}
	connect, err := times(a.Connections, func() error {
		c, err := dial(ctx)
		if err != nil {
			return err
		}
		return errors.Join(request(ctx, c), c.Close())
	})
	if err != nil {
		return Cost{}, err
	}
	processes := []*apiserver.Process{p.agent, p.proxy, p.peer}
	start, err := used(processes)
	if err != nil {
		return Cost{}, err
	}
	workers, workersCtx := errgroup.WithContext(ctx)
	for range a.Workers {
		workers.Go(func() error {
			_, err := keep(workersCtx, dial, a.Requests/a.Workers)
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return Cost{}, err
	}
	end, err := used(processes)
	if err != nil {
		return Cost{}, err
	}
	perRequest := func(i int) time.Duration { return (end[i] - start[i]) / time.Duration(a.Requests) }
	return Cost{Request: median(requests), Connect: median(connect), Agent: perRequest(0), Proxy: perRequest(1), Peer: perRequest(2)}, nil
}

// keep sends n requests on one connection, and returns how long each took.
func keep(ctx context.Context, dial dialFn, n int) ([]time.Duration, error) {
	c, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	out, err := times(n, func() error { return request(ctx, c) })
	return out, errors.Join(err, c.Close())
}

// times runs a function n times, and returns how long each run took.
func times(n int, fn func() error) ([]time.Duration, error) {
	out := make([]time.Duration, 0, n)
	for range n {
		began := time.Now()
		if err := fn(); err != nil {
			return out, err
		}
		out = append(out, time.Since(began))
	}
	return out, nil
}

// request sends one request.
func request(ctx context.Context, c net.Conn) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var b [messageBytes]byte
	if err := c.SetDeadline(time.Now().Add(upLimit)); err != nil {
		return errors.Wrap(err, "cannot set a deadline")
	}
	if _, err := c.Write(b[:]); err != nil {
		return errors.Wrap(err, "cannot send a request to the target")
	}
	_, err := io.ReadFull(c, b[:])
	return errors.Wrap(err, "cannot read the target's response")
}

// used returns the processor time that processes have taken.
func used(ps []*apiserver.Process) ([]time.Duration, error) {
	out := make([]time.Duration, 0, len(ps))
	for _, p := range ps {
		d, err := harness.Processor(p)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func middle(cs []Cost) Cost {
	medianOf := func(fn func(Cost) time.Duration) time.Duration {
		ds := make([]time.Duration, 0, len(cs))
		for _, c := range cs {
			ds = append(ds, fn(c))
		}
		return median(ds)
	}
	return Cost{
		Request: medianOf(func(c Cost) time.Duration { return c.Request }),
		Connect: medianOf(func(c Cost) time.Duration { return c.Connect }),
		Agent:   medianOf(func(c Cost) time.Duration { return c.Agent }),
		Proxy:   medianOf(func(c Cost) time.Duration { return c.Proxy }),
		Peer:    medianOf(func(c Cost) time.Duration { return c.Peer }),
	}
}

// median returns the median of durations, and 0 for none.
func median(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(ds))[len(ds)/2]
}

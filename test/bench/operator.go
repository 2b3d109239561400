// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

const (
	// Each of loadRounds rounds has loadWorkers parallel clients for loadTime.
	loadWorkers = 8
	loadTime    = 10 * time.Second
	loadRounds  = 3

	// Goals as ratios to the operator. The operator's proxies forward packets in the kernel, with
	// privileges; the project's proxies need none unless they have Kernel networking, but copy each
	// byte in a process. The project's controllers are a provider and a function.
	maxFirstByte         = 0.05
	maxControllerMemory  = 1.0
	maxControllersAtMany = 0.8
	maxProxyMemory       = 1.1
	maxRequest           = 1.0
	maxProcessor         = 1.1
	maxKernel            = 0.9

	// agentProgram is the name of an agent's process, and maxAgent is the anonymous memory of an agent, in MiB.
	agentProgram = "agent"
	maxAgent     = 12

	// atScale is the number of services from which maxControllersAtMany is the goal.
	atScale = 500

	// downLimit is how long it may take to remove a lab.
	downLimit = 3 * time.Minute
)

// inLab measures in a new lab, and removes it afterwards.
func (c *cli) inLab(ctx context.Context, part string, measure func(context.Context, *sidebyside.Lab) ([]Result, error)) (rs []Result, err error) {
	bin, err := os.MkdirTemp("", "tailscale-gateway-bench-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a folder for programs")
	}
	defer os.RemoveAll(bin) // The folder is temporary.
	progress("%s: bringing up a lab; %s", part, load())
	lab, err := sidebyside.OpenLab(ctx, bin, c.Version, c.Flavour, progress)
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), downLimit)
		defer cancel()
		err = errors.Join(err, lab.Close(down))
		progress("%s: done; %s", part, load())
	}()
	if err != nil {
		return nil, err
	}
	if err := lab.Prepare(ctx); err != nil {
		return nil, err
	}
	return measure(ctx, lab)
}

// operator measures the project and Tailscale's own operator in one lab.
func (c *cli) operator(ctx context.Context, lab *sidebyside.Lab) ([]Result, error) {
	m := &versus{
		lab:    lab,
		ours:   sidebyside.NewOurs(lab, "ours", c.Networking),
		kernel: sidebyside.NewOurs(lab, "kernel", "Kernel"),
		theirs: sidebyside.NewTheirs(lab),
		rounds: c.Rounds, services: c.Services,
	}
	var rs []Result
	for _, s := range m.sides() {
		progress("operator: installing the proxies of %s", s.Name())
		if err := s.Install(ctx); err != nil {
			return nil, err
		}
	}
	for _, measure := range []func(context.Context) ([]Result, error){m.first, m.carry, m.roll, m.many, m.alike} {
		results, err := measure(ctx)
		rs = append(rs, results...)
		if err != nil {
			return rs, err
		}
	}
	return rs, nil
}

// A versus measures both sides in turns.
type versus struct {
	lab          *sidebyside.Lab
	ours, theirs sidebyside.Side

	// kernel is the project with the networking mode of the operator's proxies. It runs last, so
	// that its proxies do not affect the others.
	kernel sidebyside.Side

	rounds   int
	services int
}

func (v *versus) sides() []sidebyside.Side { return []sidebyside.Side{v.ours, v.theirs} }

// service returns the name of a side's service.
func service(s sidebyside.Side, i int) string { return fmt.Sprintf("%s-%d", s.Name(), i) }

// first measures the time from apply to the first byte, for ingress and egress, and the memory with
// one service. A first round, which does not count, lets clients and proxies find their paths.
func (v *versus) first(ctx context.Context) ([]Result, error) {
	ingress, egress := map[string][]time.Duration{}, map[string][]time.Duration{}
	var rs []Result
	for i := range v.rounds + 1 {
		for _, s := range v.sides() {
			// Both at once: the operator's proxies take minutes for each.
			var ingressTime, out time.Duration
			both, bothCtx := errgroup.WithContext(ctx)
			both.Go(func() (err error) {
				ingressTime, err = v.lab.Ingress(bothCtx, s, service(s, i))
				return err
			})
			both.Go(func() (err error) {
				out, err = v.lab.Egress(bothCtx, s, service(s, i)+"-out")
				return err
			})
			if err := both.Wait(); err != nil {
				return rs, err
			}
			progress("operator: round %d, %s: first byte after %s (ingress), %s (egress)", i, s.Name(), ingressTime.Round(time.Millisecond), out.Round(time.Millisecond))
			if i > 0 {
				ingress[s.Name()], egress[s.Name()] = append(ingress[s.Name()], ingressTime), append(egress[s.Name()], out)
			}
		}
		if i == 0 {
			m, err := v.memory(ctx, 1)
			if err != nil {
				return rs, err
			}
			rs = append(rs, m...)
		}
	}
	return append(rs,
		compared("operator.ingress_first_byte_ratio", median(ingress[v.ours.Name()]).Seconds(), median(ingress[v.theirs.Name()]).Seconds(), "s", maxFirstByte),
		compared("operator.egress_first_byte_ratio", median(egress[v.ours.Name()]).Seconds(), median(egress[v.theirs.Name()]).Seconds(), "s", maxFirstByte),
	), nil
}

// roll measures how many requests are lost while one proxy pod is replaced.
func (v *versus) roll(ctx context.Context) ([]Result, error) {
	lost := map[string]float64{}
	for _, s := range v.sides() {
		r, err := v.lab.Roll(ctx, s, service(s, 0))
		if err != nil {
			return nil, err
		}
		lost[s.Name()] = float64(r.Lost)
		progress("operator: rolled a pod of %s in %.0f s: %s", s.Name(), r.Seconds, r)
	}
	r := plain("operator.roll_lost_requests", lost[v.ours.Name()], "requests", 0)
	baseline := lost[v.theirs.Name()]
	r.Baseline = &baseline
	return []Result{r}, nil
}

// many measures the memory with many services, all of which answer.
func (v *versus) many(ctx context.Context) ([]Result, error) {
	for _, s := range v.sides() {
		began := time.Now()
		for i := v.rounds + 1; i < v.services; i++ {
			if err := s.ApplyIngress(ctx, service(s, i)); err != nil {
				return nil, err
			}
		}
		for i := v.rounds + 1; i < v.services; i++ {
			// The second apply changes nothing.
			if _, err := v.lab.Ingress(ctx, s, service(s, i)); err != nil {
				return nil, err
			}
		}
		progress("operator: %d services of %s answer %s after the first was applied", v.services, s.Name(), time.Since(began).Round(time.Second))
	}
	return v.memory(ctx, v.services)
}

// memory measures the memory of controllers and proxies with this many ingress services.
func (v *versus) memory(ctx context.Context, services int) ([]Result, error) {
	controllers, proxies := map[string]float64{}, map[string]float64{}
	for _, s := range v.sides() {
		var err error
		if controllers[s.Name()], err = v.lab.Memory(ctx, s.Controllers()...); err != nil {
			return nil, err
		}
		if proxies[s.Name()], err = v.lab.Memory(ctx, s.Proxies()); err != nil {
			return nil, err
		}
	}
	row := func(component string, m map[string]float64, goal float64) Result {
		return compared(fmt.Sprintf("operator.%s_memory_%d_services", component, services), m[v.ours.Name()], m[v.theirs.Name()], "MiB", goal)
	}
	agent, err := v.lab.Anonymous(ctx, agentProgram, v.ours.Proxies())
	if err != nil {
		return nil, err
	}
	goal := maxControllerMemory
	if services >= atScale {
		goal = maxControllersAtMany
	}
	return []Result{
		row("controllers", controllers, goal), row("proxies", proxies, maxProxyMemory),
		plain(fmt.Sprintf("operator.agent_anonymous_mib_%d_services", services), agent, "MiB", maxAgent),
	}, nil
}

// median returns the median of durations, and 0 for none.
func median(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(ds))[len(ds)/2]
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Bench measures the provider: the real process with its default flags, a real API server and a
// simulated tailnet, all on this machine. It also measures the cost of the hops of a connection
// into the tailnet. On request it measures the extension with real Envoy Gateway and Envoy, at rest
// and through an hour of changes and failures, and the whole project beside Tailscale's own
// operator in a lab, and what size costs: many routes, a large tailnet, and many composites. It prints a
// table, writes JSON, and fails when a goal is missed. This package holds the measurements and the goals.
// Shared code is in internal/harness, the run of many clusters in internal/swarm, Envoy Gateway with and
// without the extension in internal/gateway, the hour of changes in internal/soak, both sides of a
// comparison with the operator in internal/sidebyside, a path into a tailnet in internal/hops, a large
// tailnet in internal/big, and Crossplane with function and provider in internal/controlplane.
//
// Ratios compare measurements of one run only: other load on the machine affects both sides.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/sidebyside"
)

type cli struct {
	Out     string        `default:"_out/bench.json" help:"File that results are written to."`
	Logs    string        `default:"_out/bench-logs" help:"Folder for the logs of the providers."`
	Bin     string        `help:"Folder with the programs provider and member. Built by default." type:"existingdir"`
	Parts   []string      `name:"only" default:"create,rest,swarm,hops" enum:"create,rest,swarm,hops,functions,operator,first,visible,drain,extension,gateway,soak,routes,tailnet,scale,bulk" help:"Which parts to run: ${enum}."`
	Creates int           `default:"200" help:"How many VIPServices are created at once."`
	Objects int           `default:"1000" help:"Number of VIPServices, and of Devices, at rest."`
	Polls   int           `default:"3" help:"Number of polls over which calls are counted."`
	Members int           `default:"20" help:"How many clusters share a service."`
	Swarm   time.Duration `default:"5m" help:"For how long clusters attach and detach."`
	Seed    uint64        `help:"Seed of random choices. Default: the time."`

	Version    string `default:"v0.1.0-dev" help:"Version of the packages that the lab builds and installs, to compare with Tailscale's own operator."`
	Flavour    string `default:"namespaced" enum:"namespaced,claims" help:"Kinds that the lab installs: composites in a namespace, or claims."`
	Networking string `default:"Userspace" enum:"Userspace,Kernel" help:"Networking of the project's proxies in that comparison."`
	Rounds     int    `default:"5" help:"How often the time to the first byte is measured."`
	Services   int    `default:"50" help:"Number of services for the measurement of memory, and on one TailscaleEndpoints."`

	Firsts int `default:"20" help:"How often a Service of an empty namespace is published."`

	Visible     int `default:"100" help:"How many routes of a shared Gateway are made and deleted, one after the other."`
	OwnServices int `default:"20" help:"How many routes with a separate Tailscale Service are made and deleted."`

	Changes int `default:"300" help:"How many endpoints come and go in front of the extension."`

	Deletions int `default:"200" help:"How many ingress pods are deleted under load, one after the other."`

	Duration time.Duration `default:"1h" help:"How long a soak changes objects and injects failures."`
	Routes   int           `default:"300" help:"How many routes change in a soak."`
	Edits    float64       `default:"4" help:"Number of changes per second in a soak."`

	Devices         int `default:"20000" help:"How many devices a large tailnet has."`
	TailnetServices int `default:"10000" help:"How many services a large tailnet has."`
	ScaleServices   int `default:"1000" help:"How many TailscaleServices a control plane has at scale, with a TailscaleEndpoints for five and a TailscaleGateway for twenty."`
	ScaleRoutes     int `default:"20000" help:"How many routes the extension has at scale, four to a target."`

	Idle time.Duration `default:"10m" help:"How long calls of functions are counted while nothing changes."`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("bench"), kong.Description("Measures the provider on this machine."))
	// Logs of libraries are discarded.
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.FatalIfErrorf(c.run(ctx))
}

// A part takes some measurements. It may return results with an error.
type part struct {
	name string
	run  func(ctx context.Context, env *harness.Env) ([]Result, error)
}

func (c *cli) run(ctx context.Context) error {
	var results []Result
	var errs []error
	for _, p := range []struct {
		name    string
		measure func(context.Context, *sidebyside.Lab) ([]Result, error)
	}{
		{name: "functions", measure: c.functions},
		{name: "operator", measure: c.operator},
		{name: "first", measure: c.first},
		{name: "visible", measure: c.visible},
		{name: "drain", measure: c.drain},
		{name: "bulk", measure: c.bulk},
	} {
		if !slices.Contains(c.Parts, p.name) || ctx.Err() != nil {
			continue
		}
		rs, err := c.inLab(ctx, p.name, p.measure)
		results = append(results, rs...)
		errs = append(errs, errors.Wrapf(err, "cannot measure %s", p.name))
	}
	rs, err := c.provider(ctx)
	results = append(results, rs...)
	errs = append(errs, err)
	for _, p := range []struct {
		name    string
		measure func(context.Context) ([]Result, error)
	}{
		{name: "hops", measure: c.hops},
		{name: "extension", measure: c.extension},
		{name: "gateway", measure: c.gateway},
		{name: "soak", measure: c.soak},
		{name: "routes", measure: c.routes},
		{name: "scale", measure: c.scale},
	} {
		if !slices.Contains(c.Parts, p.name) || ctx.Err() != nil {
			continue
		}
		rs, err := p.measure(ctx)
		results = append(results, rs...)
		errs = append(errs, errors.Wrapf(err, "cannot measure %s", p.name))
	}
	if err := printTable(os.Stdout, results); err != nil {
		return err
	}
	errs = append(errs, write(c.Out, results), missed(results))
	return errors.Join(errs...)
}

// provider runs the parts that measure only the provider.
func (c *cli) provider(ctx context.Context) ([]Result, error) {
	parts := slices.DeleteFunc([]part{
		{name: "create", run: c.create},
		{name: "rest", run: c.rest},
		{name: "swarm", run: c.swarm},
		{name: "tailnet", run: c.tailnet},
	}, func(p part) bool { return !slices.Contains(c.Parts, p.name) })
	if len(parts) == 0 {
		return nil, nil
	}
	bin := c.Bin
	if bin == "" {
		var err error
		if bin, err = os.MkdirTemp("", "tailscale-gateway-bench-"); err != nil {
			return nil, errors.Wrap(err, "cannot create a folder for programs")
		}
		defer os.RemoveAll(bin)
		progress("building the provider")
		if err := harness.Build(ctx, bin, "./cmd/provider", "./test/bench/member"); err != nil {
			return nil, err
		}
	}
	var results []Result
	var errs []error
	for _, p := range parts {
		if ctx.Err() != nil {
			break
		}
		rs, err := c.runPart(ctx, p, bin)
		results = append(results, rs...)
		errs = append(errs, errors.Wrapf(err, "cannot measure %s", p.name))
	}
	return results, errors.Join(errs...)
}

// runPart runs a part with a new API server, so that it does not see the objects of another part.
func (c *cli) runPart(ctx context.Context, p part, bin string) ([]Result, error) {
	progress("%s: starting an API server; %s", p.name, load())
	defer func() { progress("%s: done; %s", p.name, load()) }()
	env, err := harness.NewEnv(ctx, bin, filepath.Join(c.Logs, p.name))
	if err != nil {
		return nil, err
	}
	partCtx, stop := context.WithCancel(ctx)
	rs, err := p.run(partCtx, env)
	stop() // An API server does not stop while a client watches.
	return rs, errors.Join(err, env.Close())
}

// load describes the other load on the machine: absolute numbers mean little on a busy one.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "the machine's load is not known"
	}
	return fmt.Sprintf("load averages over 1, 5 and 15 minutes %s, on %d cores", strings.Join(strings.Fields(string(b))[:3], ", "), runtime.NumCPU())
}

var began = time.Now()

// progress prints a line about the progress.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%7s  "+format+"\n", append([]any{time.Since(began).Round(time.Second)}, args...)...)
}

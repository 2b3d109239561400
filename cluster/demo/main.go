// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows Tailscale Gateway at work on one machine: it brings the lab
// up, installs Crossplane and our packages as anyone would, applies
// examples/quickstart, and reaches a pod from the tailnet, and then through a Gateway
// of Envoy Gateway. It drives the lab and the installed tools by their commands alone.
package main

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Up         upCmd         `cmd:"" help:"Run all steps: lab, Crossplane, packages, quickstart, Envoy Gateway, and checks of both directions. Safe to run again."`
	Install    installCmd    `cmd:"" help:"Run the steps of up, but stop before the quickstart."`
	Quickstart quickstartCmd `cmd:"" help:"Apply the quickstart to a lab that install has prepared, and check that it works."`
	Tailnet    tailnetCmd    `cmd:"" help:"Give the quickstart another tailnet of the lab, as a TailscaleTailnet: bring the lab up with --tailnets=2 first."`
	Routes     routesCmd     `cmd:"" help:"Install Envoy Gateway and the extension beside the quickstart, and reach its page through a Gateway."`
	Gateways   gatewaysCmd   `cmd:"" help:"Install only Envoy Gateway and the extension, in a lab that install has prepared."`
	Clusters   clustersCmd   `cmd:"" help:"Bring up three clusters that share a service, and end them in different ways under load: pods, backends, controllers and packets. Prints which requests are lost, and fails if a goal is missed."`
	Chaos      chaosCmd      `cmd:"" help:"Bring up three clusters as clusters does, send requests through the shared address, Envoy and egress, and have faults happen at random: pods, processes and links fail, clusters are cut off, Tailscale's API and control fail. Prints what each fault cost, and fails if a goal is missed, or if anything is missing or left over at the end."`
	Fencing    fencingCmd    `cmd:"" help:"Bring up three clusters as clusters does, with fencing, and cut off the one that clients of the tailnet use, with its controllers and without a warning, again and again. Prints how long clients wait for an answer, and fails if the goal is missed."`
	Down       downCmd       `cmd:"" help:"Take everything down. Only the cache of built programs stays."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	k := kong.Parse(&cli{},
		kong.Name("demo"),
		kong.Description("Bring up a cluster and a tailnet on this machine, and reach a pod through a Tailscale Service and through a Gateway. Needs root, on Debian."),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}

type upCmd struct {
	options
}

// Run brings everything up and ends with the proof.
func (c *upCmd) Run(ctx context.Context) error {
	d := newDemo(c.options)
	return run(ctx, os.Stdout, slices.Concat(d.installSteps(), d.quickstartSteps(), d.routeSteps()))
}

type installCmd struct {
	options
}

// Run brings up all but the quickstart.
func (c *installCmd) Run(ctx context.Context) error {
	return run(ctx, os.Stdout, newDemo(c.options).installSteps())
}

type quickstartCmd struct{}

// Run applies the quickstart to a lab that is up.
func (c *quickstartCmd) Run(ctx context.Context) error {
	l, err := findLab(ctx)
	if err != nil {
		return err
	}
	return run(ctx, os.Stdout, (&demo{lab: l}).quickstartSteps())
}

type tailnetCmd struct {
	Name string `arg:"" help:"Name of the tailnet in the lab: two, ..."`
	As   string `help:"Name of the TailscaleTailnet. The default is the tailnet's name."`
}

// Run adds a tailnet to a lab where the quickstart runs.
func (c *tailnetCmd) Run(ctx context.Context) error {
	l, err := findLab(ctx, "--tailnet="+c.Name)
	if err != nil {
		return err
	}
	return run(ctx, os.Stdout, (&demo{lab: l}).joinSteps(cmp.Or(c.As, c.Name)))
}

type routesCmd struct {
	options
}

// Run adds routes to a lab where the quickstart runs.
func (c *routesCmd) Run(ctx context.Context) error {
	l, err := findLab(ctx)
	if err != nil {
		return err
	}
	d := newDemo(c.options)
	d.lab = l
	return run(ctx, os.Stdout, d.routeSteps())
}

type gatewaysCmd struct {
	options
}

// Run adds Envoy Gateway to a lab that is up.
func (c *gatewaysCmd) Run(ctx context.Context) error {
	l, err := findLab(ctx)
	if err != nil {
		return err
	}
	d := newDemo(c.options)
	d.lab = l
	return run(ctx, os.Stdout, d.gatewaySteps())
}

type downCmd struct{}

// Run takes the lab down, and with it all that ran there.
func (c *downCmd) Run(ctx context.Context) error {
	return goRun(ctx, ".", "./cluster/lab", "down")
}

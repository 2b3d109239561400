// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/harness"
	"github.com/tailscale-gateway/tailscale-gateway/test/bench/internal/hops"
)

const (
	// hopRounds is the number of rounds of each path in turns. The others are requests and
	// connections of a round.
	hopRounds      = 9
	hopRequests    = 4000
	hopConnections = 100

	// hopSlack is how much longer a request may take because of the agent.
	hopSlack = 1.6

	// agentShare is the agent's maximum processor time, as a share of the time of the proxy's
	// tailscaled.
	agentShare = 0.75
)

// hops measures the costs of the hops of egress, without a cluster.
func (c *cli) hops(ctx context.Context) ([]Result, error) {
	root, err := apiserver.Root()
	if err != nil {
		return nil, err
	}
	tailscaled, err := apiserver.Program(ctx, root, "tailscaled", "TEST_ASSET_TAILSCALED")
	if err != nil {
		return nil, err
	}
	bin, err := os.MkdirTemp("", "tailscale-gateway-bench-")
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a folder for programs")
	}
	defer os.RemoveAll(bin) // The folder is temporary.
	if err := harness.Build(ctx, bin, "./test/bench/carrier"); err != nil {
		return nil, err
	}
	progress("hops: two nodes join a tailnet; %s", load())
	p, err := hops.Open(ctx, tailscaled, filepath.Join(bin, "carrier"))
	if err != nil {
		return nil, err
	}
	costs, err := p.Measure(ctx, hops.Amount{Rounds: hopRounds, Requests: hopRequests, Connections: hopConnections, Workers: loadWorkers})
	if err := errors.Join(err, p.Close()); err != nil {
		return nil, err
	}
	progress("hops: done; %s", load())
	if err := printHops(os.Stdout, costs); err != nil {
		return nil, err
	}
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return []Result{
		compared("hops.agent_request", us(costs.Agent.Request), us(costs.Tailnet.Request), "us", hopSlack),
		compared("hops.agent_connect", us(costs.Agent.Connect), us(costs.Tailnet.Connect), "us", hopSlack),
		compared("hops.agent_processor", us(costs.Agent.Agent), us(costs.Agent.Proxy), "us", agentShare),
	}, nil
}

// printHops prints how long each hop delays a request on an open connection, and its processor
// time.
func printHops(w io.Writer, c hops.Costs) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	us := func(d time.Duration) string { return strconv.FormatInt(d.Round(time.Microsecond).Microseconds(), 10) }
	row := func(name string, request, connect time.Duration, busy string) string {
		return strings.Join([]string{name, us(request), us(connect), busy}, "\t")
	}
	lines := []string{
		"HOP\tADDS TO A REQUEST (us)\tADDS TO A CONNECTION (us)\tPROCESSOR TIME OF A REQUEST (us)",
		row("client and target, on the loopback", c.Direct.Request, c.Direct.Connect, "-"),
		row("tailscaled of proxy and peer", c.Tailnet.Request-c.Direct.Request, c.Tailnet.Connect-c.Direct.Connect, us(c.Agent.Proxy)+", "+us(c.Agent.Peer)),
		row("agent", c.Agent.Request-c.Tailnet.Request, c.Agent.Connect-c.Tailnet.Connect, us(c.Agent.Agent)),
	}
	if _, err := fmt.Fprintln(t, strings.Join(lines, "\n")); err != nil {
		return errors.Wrap(err, "cannot print hops")
	}
	return errors.Wrap(t.Flush(), "cannot print hops")
}

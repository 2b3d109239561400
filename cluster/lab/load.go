// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/daemon"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/tailnet"
	"github.com/tailscale-gateway/tailscale-gateway/test/load"
)

type loadCmd struct {
	serverFlags

	URL            string        `arg:"" help:"URL to request repeatedly."`
	Protocol       string        `default:"http" enum:"http,grpc,tcp" help:"What to send to the URL's address: requests of HTTP, calls of gRPC's service for health checks, or the bytes of a request of HTTP/1.0, each on a new TCP connection that the server must close."`
	From           string        `default:"tailnet" enum:"tailnet,cluster" help:"The client: a client of the tailnet, or the cluster's node, which resolves names of Services."`
	First          bool          `xor:"end" help:"End after the first response."`
	Stopped        bool          `name:"gone" xor:"end" help:"End when responses have begun and stopped again. A line on stderr reports the first response."`
	Interval       time.Duration `name:"every" default:"20ms" help:"Pause between attempts, for --first and --gone."`
	Workers        int           `default:"1" help:"Number of concurrent clients."`
	Rate           float64       `help:"Maximum number of requests per second. 0 means no limit."`
	NewConnections bool          `help:"Use a new connection for each request."`
	Expect         string        `help:"Text that a response must contain."`
	Timeout        time.Duration `default:"10s" help:"How long to wait for a response."`
	Duration       time.Duration `name:"for" default:"10m" help:"Duration of the run. An interrupt ends it early."`
}

// Run prints a report as JSON, also after an interrupt.
func (c *loadCmd) Run(r runtime) error {
	trust, err := c.tls()
	if err != nil {
		return err
	}
	h := load.HTTP{Targets: []load.Target{{URL: c.URL, Host: c.Host, Check: load.Contains(c.Expect)}}, TLS: trust, NewConnections: c.NewConnections}
	switch c.From {
	case "cluster":
		p, err := planned(r)
		if err != nil {
			return err
		}
		h.Dial = inCluster(p)
	default:
		if err := r.daemon().EnsureClient(r, r.tailnet.Name, daemon.DefaultClient, daemon.ClientOptions{}); err != nil {
			return err
		}
		socket := r.paths.ClientSocket(r.tailnet.Name, daemon.DefaultClient)
		h.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return tailnet.Dial(ctx, socket, network, addr)
		}
	}
	o := load.Options{Client: c.clients(h), Workers: c.Workers, Rate: c.Rate, Timeout: c.Timeout}
	if c.First || c.Stopped {
		o.Interval = c.Interval
	}
	ctx, cancel := context.WithTimeout(r, c.Duration)
	defer cancel()
	var report load.Report
	var failed error
	switch {
	case c.First:
		report, failed = load.First(ctx, o)
	case c.Stopped:
		report, failed = load.Gone(ctx, o, func() { fmt.Fprintln(os.Stderr, "answered") })
	default:
		report = load.Run(ctx, o)
	}
	return errors.Join(errors.Wrapf(failed, "%q", c.URL), errors.Wrap(json.NewEncoder(os.Stdout).Encode(report), "cannot print the report"))
}

// clients returns the clients of the protocol.
func (c *loadCmd) clients(h load.HTTP) func(worker int) load.Client {
	switch c.Protocol {
	case "grpc":
		return load.GRPC{Target: h.Targets[0], Dial: h.Dial}.Clients
	case "tcp":
		return load.TCP{Target: h.Targets[0], Dial: h.Dial}.Clients
	default:
		return h.Clients
	}
}

// planned returns the plan of the command's cluster.
func planned(r runtime) (plan.Cluster, error) {
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return plan.Cluster{}, err
	}
	all, err := plan.Clusters(plan.MaxClusters, st.IPFamily)
	if err != nil {
		return plan.Cluster{}, err
	}
	for _, p := range all {
		if p.Name == r.cluster {
			return p, nil
		}
	}
	return plan.Cluster{}, errors.Errorf("cannot find cluster %q", r.cluster)
}

// resolver returns a resolver that asks the cluster's DNS.
func resolver(p plan.Cluster) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return netns.Dial(ctx, p.Namespace, network, net.JoinHostPort(p.DNS.String(), "53"))
	}}
}

// inCluster returns a function that dials as a pod with hostNetwork does, with the cluster's DNS.
func inCluster(p plan.Cluster) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dns := resolver(p)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot dial %q", addr)
		}
		family := "ip4"
		if p.Node.Is6() {
			family = "ip6"
		}
		if _, err := netip.ParseAddr(host); err == nil {
			return netns.Dial(ctx, p.Namespace, network, addr)
		}
		found, err := dns.LookupNetIP(ctx, family, host)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot resolve %q", host)
		}
		return netns.Dial(ctx, p.Namespace, network, net.JoinHostPort(found[0].Unmap().String(), port))
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/netns"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

type clusterFaultCmd struct {
	Clear bool `help:"End the fault."`
}

// Run takes the cluster's link from the hub's network, or brings it back.
func (c *clusterFaultCmd) Run(r runtime) error {
	p, err := planned(r)
	if err != nil {
		return err
	}
	if c.Clear {
		return netns.Connect(plan.TailnetNamespace, plan.HubBridge, p.Name)
	}
	return netns.Disconnect(plan.TailnetNamespace, p.Name)
}

type tailnetFaultCmd struct {
	Targets    []string      `name:"on" default:"api" enum:"api,control,derp" help:"Parts that fail, separated by commas: api (the API and its credentials), control (requests of nodes to the control server: for its key, new connections, and on open connections) or derp (the relay)."`
	Status     int           `default:"500" help:"HTTP status of the responses. 0 serves the requests, for --latency alone."`
	RetryAfter time.Duration `help:"Retry-After header of the responses, for instance with --status=429."`
	Refuse     bool          `help:"Reset connections instead of responding."`
	Latency    time.Duration `help:"Delay of each response."`
	Path       string        `help:"Regular expression of the paths that fail, instead of --on."`
	Clear      bool          `help:"End all faults."`
}

// faultPaths are the paths that fail, by value of --on.
var faultPaths = map[string]string{"api": "", "control": tailnetsim.ControlPaths, "derp": tailnetsim.DERPPaths}

// faults returns the faults that the command line describes.
func (c *tailnetFaultCmd) faults() []tailnetsim.Fault {
	out := []tailnetsim.Fault{}
	if c.Clear {
		return out
	}
	f := tailnetsim.Fault{
		Path: c.Path, Status: c.Status, RetryAfter: int(c.RetryAfter.Seconds()), Refuse: c.Refuse, LatencyMS: int(c.Latency.Milliseconds()),
	}
	if c.Path != "" {
		return append(out, f)
	}
	for _, name := range c.Targets {
		f.Path = faultPaths[name]
		out = append(out, f)
	}
	return out
}

// Run replaces the faults of the tailnet's simulator.
func (c *tailnetFaultCmd) Run(r runtime) error {
	body, err := json.Marshal(c.faults())
	if err != nil {
		return errors.Wrap(err, "cannot encode faults")
	}
	st, err := r.daemon().Status(r, false)
	if err != nil {
		return err
	}
	api, err := tailnetAPI(r, st)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(r, http.MethodPost, api+"/sim/faults", bytes.NewReader(body))
	if err != nil {
		return errors.Wrap(err, "cannot make request for the simulator")
	}
	rsp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot send request to the simulator")
	}
	defer rsp.Body.Close() // Only read.
	reply, err := io.ReadAll(rsp.Body)
	if err != nil || rsp.StatusCode != http.StatusOK {
		return errors.Errorf("cannot set faults: %s: %s, %v", rsp.Status, strings.TrimSpace(string(reply)), err)
	}
	return nil
}

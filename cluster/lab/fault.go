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

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

type tailnetFaultCmd struct {
	Targets    []string      `name:"on" default:"api" enum:"api,control,derp" help:"What fails: api is the API with its credentials; control is what nodes ask of the control server, its key, new connections, and requests in those that are open; derp is the relay. Several, separated by commas."`
	Status     int           `default:"500" help:"Status that requests are answered with. 0 serves them, for --latency alone."`
	RetryAfter time.Duration `help:"Header Retry-After of these answers, as with --status=429."`
	Refuse     bool          `help:"Reset connections in place of an answer."`
	Latency    time.Duration `help:"Delay of each answer."`
	Path       string        `help:"Regular expression of the paths that fail, in place of --on."`
	Clear      bool          `help:"End all faults."`
}

// faultPaths are the paths of what can fail, by its name on the command line.
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

// Run replaces the faults that the tailnet's simulator has.
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
		return errors.Wrap(err, "cannot ask the simulator")
	}
	defer rsp.Body.Close() // Only read.
	reply, err := io.ReadAll(rsp.Body)
	if err != nil || rsp.StatusCode != http.StatusOK {
		return errors.Errorf("cannot set faults: %s: %s, %v", rsp.Status, strings.TrimSpace(string(reply)), err)
	}
	return nil
}

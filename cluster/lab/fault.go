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
	Status int    `default:"500" help:"Status that requests are answered with."`
	Path   string `help:"Regular expression of the paths that fail. The default is the whole API, including credentials."`
	Clear  bool   `help:"Restore the API."`
}

// Run replaces the faults that the tailnet's simulator has.
func (c *tailnetFaultCmd) Run(r runtime) error {
	faults := []tailnetsim.Fault{{Path: c.Path, Status: c.Status}}
	if c.Clear {
		faults = []tailnetsim.Fault{}
	}
	body, err := json.Marshal(faults)
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
	said, err := io.ReadAll(rsp.Body)
	if err != nil || rsp.StatusCode != http.StatusOK {
		return errors.Errorf("cannot set faults: %s: %s, %v", rsp.Status, strings.TrimSpace(string(said)), err)
	}
	return nil
}

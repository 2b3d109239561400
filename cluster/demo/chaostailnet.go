// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// A tailnetView reads and changes the lab's tailnet, whatever its API does to others.
type tailnetView struct {
	domain string
	url    string
	client *http.Client
	api    *tailscale.Client
}

// A bystander marks requests, so that no fault hits them.
type bystander struct{ http.RoundTripper }

// RoundTrip sends a request with the mark.
func (b bystander) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(tailnetsim.HeaderBystander, "chaos")
	return b.RoundTripper.RoundTrip(r)
}

// findTailnet returns a view of the lab's tailnet.
func findTailnet(l *lab) (*tailnetView, error) {
	secret, err := os.ReadFile(l.clientSecretFile)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the OAuth client's secret")
	}
	base, err := url.Parse(l.tailnetAPI)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the URL of the tailnet's API")
	}
	h := &http.Client{Transport: bystander{http.DefaultTransport}, Timeout: time.Minute}
	return &tailnetView{domain: l.domain, url: l.tailnetAPI, client: h, api: &tailscale.Client{
		BaseURL: base, HTTP: h, Auth: &tailscale.OAuth{ClientID: l.clientID, ClientSecret: strings.TrimSpace(string(secret))},
	}}, nil
}

// send sends a request to the simulator, and decodes its answer.
func (t *tailnetView) send(ctx context.Context, method, path string, input, output any) error {
	body, err := json.Marshal(input)
	if err != nil {
		return errors.Wrap(err, "cannot encode a request")
	}
	req, err := http.NewRequestWithContext(ctx, method, t.url+path, bytes.NewReader(body))
	if err != nil {
		return errors.Wrap(err, "cannot make a request for the simulator")
	}
	rsp, err := t.client.Do(req)
	if err != nil {
		return errors.Wrap(err, "cannot send a request to the simulator")
	}
	defer rsp.Body.Close() // Only read.
	answer, err := io.ReadAll(rsp.Body)
	if err != nil {
		return errors.Wrap(err, "cannot read the simulator's answer")
	}
	if rsp.StatusCode != http.StatusOK && rsp.StatusCode != http.StatusCreated {
		return errors.Errorf("%s %s: %s: %s", method, path, rsp.Status, answer)
	}
	if output == nil {
		return nil
	}
	return errors.Wrapf(json.Unmarshal(answer, output), "cannot decode the answer of %s", path)
}

// state returns the tailnet's devices, keys and services.
func (t *tailnetView) state(ctx context.Context) (tailnetsim.StateView, error) {
	out := tailnetsim.StateView{}
	return out, t.send(ctx, http.MethodGet, "/sim/state", nil, &out)
}

// setFaults replaces the faults of the simulator.
func (t *tailnetView) setFaults(ctx context.Context, fs ...tailnetsim.Fault) error {
	if fs == nil {
		fs = []tailnetsim.Fault{}
	}
	return t.send(ctx, http.MethodPost, "/sim/faults", fs, nil)
}

// remaining returns how many faults of the simulator wait for requests.
func (t *tailnetView) remaining(ctx context.Context) (int, error) {
	var fs []tailnetsim.Fault
	err := t.send(ctx, http.MethodGet, "/sim/faults", nil, &fs)
	return len(fs), err
}

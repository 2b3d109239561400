// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Services returns the tailnet's services from the shared list, which may be as
// old as maxAge; zero means the age that the client was made with.
func (c *Client) Services(ctx context.Context, maxAge time.Duration) ([]Service, error) {
	if maxAge == 0 {
		maxAge = c.listMaxAge
	}
	return c.services.get(ctx, maxAge)
}

// Service returns a service by name, fresh.
func (c *Client) Service(ctx context.Context, name string) (*Service, error) {
	s, err := c.api.Services().Get(ctx, name)
	if err != nil {
		return nil, classify(err, scopeServices, false)
	}
	return s, nil
}

// PutService makes or replaces a service. Who replaces one must give back its
// addresses.
func (c *Client) PutService(ctx context.Context, s Service) error {
	defer c.services.expire()
	return classify(c.api.Services().CreateOrUpdate(ctx, s), scopeServices, false)
}

// DeleteService removes a service. One that does not exist is no error.
func (c *Client) DeleteService(ctx context.Context, name string) error {
	defer c.services.expire()
	return ignoreNotFound(classify(c.api.Services().Delete(ctx, name), scopeServices, false))
}

// A Host is a device that offers to host a service.
type Host struct {
	NodeID string

	// Configured tells whether it serves what the service defines.
	Configured bool

	// Approval is not-approved, approved:auto or approved:manual.
	Approval string
}

// Approved tells whether the tailnet lets the device host the service.
func (h Host) Approved() bool { return strings.HasPrefix(h.Approval, "approved") }

// Hosts returns the devices that offer to host a service, fresh.
func (c *Client) Hosts(ctx context.Context, service string) ([]Host, error) {
	var out struct {
		Hosts []struct {
			// The published API says stableNodeID, the client library of the
			// next version nodeId.
			StableNodeID string `json:"stableNodeID"`
			NodeID       string `json:"nodeId"`
			Approval     string `json:"approvalLevel"`
			Configured   flag   `json:"configured"`
		} `json:"hosts"`
	}
	if err := c.raw(ctx, http.MethodGet, nil, &out, "tailnet", c.tailnet, "services", service, "devices"); err != nil {
		return nil, err
	}
	hosts := make([]Host, 0, len(out.Hosts))
	for _, h := range out.Hosts {
		id := h.StableNodeID
		if id == "" {
			id = h.NodeID
		}
		hosts = append(hosts, Host{NodeID: id, Configured: bool(h.Configured), Approval: h.Approval})
	}
	return hosts, nil
}

// ApproveHost lets a device host a service.
func (c *Client) ApproveHost(ctx context.Context, service, nodeID string) error {
	in := map[string]bool{"approved": true}
	return c.raw(ctx, http.MethodPost, in, nil, "tailnet", c.tailnet, "services", service, "device", nodeID, "approved")
}

// A flag is a boolean, or a string that says yes.
type flag bool

// UnmarshalJSON takes true, "true" and "configured" for true.
func (f *flag) UnmarshalJSON(b []byte) error {
	switch strings.Trim(string(b), "\"") {
	case "true", "configured":
		*f = true
	default:
		*f = false
	}
	return nil
}

// raw makes a call that the client library does not have.
func (c *Client) raw(ctx context.Context, method string, in, out any, path ...string) error {
	var body io.Reader = http.NoBody
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return errors.Wrap(err, "cannot encode request")
		}
		body = bytes.NewReader(b)
	}
	u := c.base.JoinPath(append([]string{"/api/v2"}, escaped(path)...)...)
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return errors.New("cannot make request, check the API URL")
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return classify(err, scopeServices, false)
	}
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return classify(err, scopeServices, false)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		e := tsclient.APIError{}
		if err := json.Unmarshal(b, &e); err != nil {
			e.Message = http.StatusText(resp.StatusCode)
		}
		e.Status = resp.StatusCode
		return classify(e, scopeServices+" and "+scopeDevices, false)
	}
	if out == nil {
		return nil
	}
	return classify(json.Unmarshal(b, out), scopeServices, false)
}

// escaped escapes each element of a path.
func escaped(path []string) []string {
	out := make([]string, 0, len(path))
	for _, e := range path {
		out = append(out, url.PathEscape(e))
	}
	return out
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// scopeHosts are the scopes of the calls on a service's hosts.
const scopeHosts = scopeServices + " and " + scopeDevices

// A Service of a tailnet, as the API has it under /vip-services: the spelling
// that carries annotations. The client library's type lacks displayName.
type Service struct {
	// Name is svc: and a DNS label.
	Name string `json:"name,omitempty"`

	// DisplayName is what people see instead, 64 characters at most.
	DisplayName string `json:"displayName,omitempty"`

	// Addrs are an IPv4 and an IPv6 address. Who makes a service may ask for an
	// IPv4 address; who updates one must give back all.
	Addrs []string `json:"addrs,omitempty"`

	Comment string `json:"comment,omitempty"`

	// Annotations belong to whoever writes them; the API only keeps them.
	Annotations map[string]string `json:"annotations,omitempty"`

	// Ports are tcp:PORT, or do-not-validate.
	Ports []string `json:"ports,omitempty"`

	Tags []string `json:"tags,omitempty"`
}

// Services returns the tailnet's services from the shared list, which may be as
// old as maxAge; zero means the age that the client was made with.
func (c *Client) Services(ctx context.Context, maxAge time.Duration) ([]Service, error) {
	s, _, err := c.ServicesAt(ctx, maxAge)
	return s, err
}

// ServicesAt is Services with the time when the list was made, by the clock of
// Tailscale's API. If the API tells no time it is ours when the list was asked
// for.
func (c *Client) ServicesAt(ctx context.Context, maxAge time.Duration) ([]Service, time.Time, error) {
	return c.services.get(ctx, c.age(maxAge))
}

func (c *Client) loadServices(ctx context.Context) ([]Service, time.Time, error) {
	return listOf[Service](ctx, c, request{
		scope: scopeServices, method: http.MethodGet, tailnet: true,
		path: []string{"tailnet", c.tailnet, "vip-services"},
	}, "vipServices")
}

func isService(s Service, name string) bool { return s.Name == name }

// Service returns a service by name, fresh.
func (c *Client) Service(ctx context.Context, name string) (*Service, error) {
	s := &Service{}
	if err := c.raw(ctx, scopeServices, http.MethodGet, nil, s, "tailnet", c.tailnet, "vip-services", name); err != nil {
		return nil, err
	}
	return s, nil
}

// PutService makes or replaces a service and returns it with its addresses. Who
// replaces one must give back its addresses.
func (c *Client) PutService(ctx context.Context, s Service) (*Service, error) {
	out := &Service{}
	err := c.services.write(s.Name, func() (fold[Service], error) {
		in, err := json.Marshal(s)
		if err != nil {
			return nil, errors.Wrap(err, "cannot encode request")
		}
		r := request{scope: scopeServices, method: http.MethodPut, body: in, path: []string{"tailnet", c.tailnet, "vip-services", s.Name}}
		if _, err := c.rawJSON(ctx, r, out); err != nil {
			return nil, err
		}
		// The documents promise the service in the answer, for /services. A list
		// without its addresses would take them from it.
		if out.Name != s.Name || len(out.Addrs) == 0 {
			if out, err = c.Service(ctx, s.Name); err != nil {
				return nil, err
			}
		}
		return replaced(*out), nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteService removes a service. One that does not exist is no error.
func (c *Client) DeleteService(ctx context.Context, name string) error {
	return c.services.write(name, func() (fold[Service], error) {
		return removed[Service], ignoreNotFound(c.raw(ctx, scopeServices, http.MethodDelete, nil, nil, "tailnet", c.tailnet, "vip-services", name))
	})
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
	if err := c.raw(ctx, scopeHosts, http.MethodGet, nil, &out, "tailnet", c.tailnet, "services", service, "devices"); err != nil {
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

// ApproveHost lets a device host a service. It returns whether the device may,
// for the API can answer that it may not.
func (c *Client) ApproveHost(ctx context.Context, service, nodeID string) (bool, error) {
	in := map[string]bool{"approved": true}
	var out struct {
		Approved *bool `json:"approved"`
	}
	err := c.raw(ctx, scopeHosts, http.MethodPost, in, &out, "tailnet", c.tailnet, "services", service, "device", nodeID, "approved")
	return err == nil && (out.Approved == nil || *out.Approved), err
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

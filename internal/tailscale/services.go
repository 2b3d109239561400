// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"cmp"
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

// Services returns the tailnet's services from the shared list.
func (c *Client) Services(ctx context.Context, staleness Staleness) ([]Service, error) {
	s, _, err := c.ServicesAt(ctx, staleness)
	return s, err
}

// ServicesAt returns what Services returns and the time of the list by the clock of
// Tailscale's API. An answer without a Date has our time of the request.
func (c *Client) ServicesAt(ctx context.Context, staleness Staleness) ([]Service, time.Time, error) {
	return c.services.get(ctx, c.maxAge(staleness))
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

// PutService makes or replaces a service and returns it as it is then, with its
// addresses. To replace a service its addresses must be given back. Whether the API
// keeps all annotations is not documented: what it lost is missing in the result.
func (c *Client) PutService(ctx context.Context, s Service) (*Service, error) {
	if err := c.checkService(s.Name, s.Tags...); err != nil {
		return nil, err
	}
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
		// The documents promise the service in the answer, for /services, where they
		// know no annotations. A list with an incomplete service would spoil it.
		if out.Name != s.Name || len(out.Addrs) == 0 || !out.HasAnnotations(s.Annotations) {
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

// HasAnnotations reports whether the service has all of these annotations.
func (s *Service) HasAnnotations(annotations map[string]string) bool {
	for k, v := range annotations {
		if have, ok := s.Annotations[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// DeleteService removes a service. One that does not exist is no error.
func (c *Client) DeleteService(ctx context.Context, name string) error {
	if err := c.checkService(name); err != nil {
		return err
	}
	return c.services.write(name, func() (fold[Service], error) {
		return removed[Service], ignoreNotFound(c.raw(ctx, scopeServices, http.MethodDelete, nil, nil, "tailnet", c.tailnet, "vip-services", name))
	})
}

// HostReady is the state of a host that serves all that its service defines. It is
// the one value that is known: the official client and programs that run against
// real tailnets wait for it (tailscale-client-go-v2 services.go; "example: ready" in
// the OpenAPI document, components.schemas.ServiceHostInfo).
const HostReady = "ready"

// A Host is a device that advertises a service.
type Host struct {
	NodeID string

	// State is how far the device is with serving the service, in the API's own
	// word. Only HostReady has a known meaning.
	State string

	// Approval is not-approved, approved:auto or approved:manual.
	Approval string
}

// Ready reports whether the API says that the device serves all that the service
// defines.
func (h Host) Ready() bool { return h.State == HostReady }

// Approved reports whether the tailnet lets the device host the service.
func (h Host) Approved() bool { return strings.HasPrefix(h.Approval, "approved") }

// Hosts returns the devices that advertise a service, fresh. A service without hosts
// may be answered by {} instead of an empty list.
func (c *Client) Hosts(ctx context.Context, service string) ([]Host, error) {
	var out struct {
		Hosts []struct {
			// The API answers nodeId. Its OpenAPI document says stableNodeID
			// (tailscale-client-go-v2 services.go, ServiceHostInfo).
			NodeID       string    `json:"nodeId"`
			StableNodeID string    `json:"stableNodeID"`
			Approval     string    `json:"approvalLevel"`
			State        hostState `json:"configured"`
		} `json:"hosts"`
	}
	if err := c.raw(ctx, scopeHosts, http.MethodGet, nil, &out, "tailnet", c.tailnet, "services", service, "devices"); err != nil {
		return nil, err
	}
	hosts := make([]Host, 0, len(out.Hosts))
	for _, h := range out.Hosts {
		hosts = append(hosts, Host{NodeID: cmp.Or(h.NodeID, h.StableNodeID), State: string(h.State), Approval: h.Approval})
	}
	return hosts, nil
}

// A HostApproval is whether a device may host a service, once it advertises it.
type HostApproval struct {
	// Approved by a person, a program, or the policy file.
	Approved bool `json:"approved"`

	// AutoApproved by autoApprovers of the policy file.
	AutoApproved bool `json:"autoApproved"`
}

// HostApproval returns whether a device may host a service. The device does not need
// to advertise the service for that.
func (c *Client) HostApproval(ctx context.Context, service, nodeID string) (HostApproval, error) {
	var out HostApproval
	err := c.raw(ctx, scopeHosts, http.MethodGet, nil, &out, "tailnet", c.tailnet, "services", service, "device", nodeID, "approved")
	return out, err
}

// ApproveHost lets a device host a service, whether the device advertises it already
// or not. It returns whether the device may, because the API can answer that it may
// not.
func (c *Client) ApproveHost(ctx context.Context, service, nodeID string) (bool, error) {
	if err := c.checkService(service); err != nil {
		return false, err
	}
	in := map[string]bool{"approved": true}
	var out struct {
		Approved *bool `json:"approved"`
	}
	err := c.raw(ctx, scopeHosts, http.MethodPost, in, &out, "tailnet", c.tailnet, "services", service, "device", nodeID, "approved")
	return err == nil && (out.Approved == nil || *out.Approved), err
}

// A hostState is a string. A boolean, which no known version of the API sends, is
// read as well.
type hostState string

// UnmarshalJSON keeps a string as it is. It reads true as HostReady, and all else as
// an empty string: a host of a state that nobody knows is still a host.
func (s *hostState) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err == nil {
		*s = hostState(text)
		return nil
	}
	if string(b) == "true" {
		*s = HostReady
	}
	return nil
}

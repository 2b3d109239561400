// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// scopeHosts are the OAuth scopes of the calls on a service's hosts.
const scopeHosts = scopeServices + " and " + scopeDevices

// A Service is a Tailscale Service as the API returns it under /vip-services, the endpoint whose
// objects have annotations. The client library's type drops fields that it does not know, and its
// call drops the response.
type Service struct {
	// Name is svc: followed by a DNS label.
	Name string `json:"name,omitempty"`

	// DisplayName is shown to people instead of the name, 64 characters at most.
	DisplayName string `json:"displayName,omitempty"`

	// Addrs are an IPv4 and an IPv6 address. A client that creates a service may request an IPv4
	// address; a client that updates a service must send all its addresses.
	Addrs []string `json:"addrs,omitempty"`

	Comment string `json:"comment,omitempty"`

	// Annotations are set by clients; the API only stores them.
	Annotations map[string]string `json:"annotations,omitempty"`

	// Ports are tcp:PORT, or do-not-validate.
	Ports []string `json:"ports,omitempty"`

	Tags []string `json:"tags,omitempty"`

	// Others are fields that this version does not know. A write keeps them.
	Others Fields `json:"-"`
}

var serviceFields = namesOf[Service]()

// UnmarshalJSON implements json.Unmarshaler.
func (s *Service) UnmarshalJSON(b []byte) error {
	type plain Service
	var all Fields
	if err := errors.Join(json.Unmarshal(b, (*plain)(s)), json.Unmarshal(b, &all)); err != nil {
		return err
	}
	s.Others = all.without(serviceFields...)
	return nil
}

// A ServicesResource calls the API for Tailscale Services and their hosts.
type ServicesResource struct{ *core }

// Services returns the tailnet's services from the shared list.
func (c ServicesResource) Services(ctx context.Context, staleness Staleness) ([]Service, error) {
	s, _, err := c.ServicesAt(ctx, staleness)
	return s, err
}

// ServicesAt returns the result of Services and the time of the list by the clock of Tailscale's
// API. If the response has no Date, the time is when the request began by the local clock.
func (c ServicesResource) ServicesAt(ctx context.Context, staleness Staleness) ([]Service, time.Time, error) {
	return c.services.get(ctx, c.maxAge(staleness))
}

func (c ServicesResource) loadServices(ctx context.Context) ([]Service, time.Time, error) {
	return listOf[Service](ctx, c.core, request{
		scope: scopeServices, method: http.MethodGet, tailnet: true,
		path: []string{"tailnet", c.tailnet, "vip-services"},
	}, "vipServices")
}

func isService(s Service, name string) bool { return s.Name == name }

// Service returns a service by name. It always sends a request.
func (c ServicesResource) Service(ctx context.Context, name string) (*Service, error) {
	s := &Service{}
	if err := c.raw(ctx, scopeServices, http.MethodGet, nil, s, "tailnet", c.tailnet, "vip-services", name); err != nil {
		return nil, err
	}
	return s, nil
}

// PutService creates or replaces a service and returns it with its addresses. A request that
// replaces a service must include its addresses. The API does not document whether it stores all
// annotations: the result lacks those that it dropped.
func (c ServicesResource) PutService(ctx context.Context, s Service) (*Service, error) {
	if err := c.checkService(s.Name, s.Tags...); err != nil {
		return nil, err
	}
	out := &Service{}
	err := c.services.write(s.Name, func() (fold[Service], error) {
		own, err := fieldsOf(s)
		if err != nil {
			return nil, err
		}
		r := request{scope: scopeServices, method: http.MethodPut, path: []string{"tailnet", c.tailnet, "vip-services", s.Name}}
		b, err := c.writeKeeping(ctx, r, own, s.Others)
		if err != nil {
			return nil, err
		}
		// The API's documents promise the service in the response only for /services, which has no
		// annotations, so the response may be anything. An incomplete service would corrupt the list.
		if json.Unmarshal(b, out) != nil || out.Name != s.Name || len(out.Addrs) == 0 || !out.HasAnnotations(s.Annotations) {
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
		if existing, ok := s.Annotations[k]; !ok || existing != v {
			return false
		}
	}
	return true
}

// DeleteService removes a service. It returns no error if the service does not exist.
func (c ServicesResource) DeleteService(ctx context.Context, name string) error {
	if err := c.checkService(name); err != nil {
		return err
	}
	return c.services.write(name, func() (fold[Service], error) {
		return removed[Service], ignoreNotFound(c.raw(ctx, scopeServices, http.MethodDelete, nil, nil, "tailnet", c.tailnet, "vip-services", name))
	})
}

// HostReady is the state of a host that serves all ports of its service. It is the only value with
// a known meaning ("example: ready" in the OpenAPI document, components.schemas.ServiceHostInfo). No
// release of the official client has the call: an open pull request does
// (tailscale-client-go-v2#103).
const HostReady = "ready"

// A Host is a device that advertises a service.
type Host struct {
	NodeID string

	// State is the device's progress in serving the service, as the API returns it. Only HostReady
	// has a known meaning.
	State string

	// Approval is not-approved, approved:auto or approved:manual.
	Approval string
}

// Ready reports whether the device serves all ports of the service according to the API.
func (h Host) Ready() bool { return h.State == HostReady }

// Approved reports whether the tailnet permits the device to host the service.
func (h Host) Approved() bool { return strings.HasPrefix(h.Approval, "approved") }

// Hosts returns the devices that advertise a service. It always sends a request. For a service
// without hosts the API may return {} instead of an empty list.
func (c ServicesResource) Hosts(ctx context.Context, service string) ([]Host, error) {
	var out struct {
		Hosts []struct {
			// The OpenAPI document says stableNodeID, and tailscale-client-go-v2#103 reads nodeId.
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

// A HostApproval describes whether a device may host a service that it advertises.
type HostApproval struct {
	// Approved means approved by a user, a program, or the policy file.
	Approved bool `json:"approved"`

	// AutoApproved means approved by autoApprovers of the policy file.
	AutoApproved bool `json:"autoApproved"`
}

// HostApproval returns whether a device may host a service. The device does not need to advertise
// the service yet.
func (c ServicesResource) HostApproval(ctx context.Context, service, nodeID string) (HostApproval, error) {
	var out HostApproval
	err := c.raw(ctx, scopeHosts, http.MethodGet, nil, &out, "tailnet", c.tailnet, "services", service, "device", nodeID, "approved")
	return out, err
}

// ApproveHost permits a device to host a service, even before the device advertises it. It returns
// whether the device is approved, because the API can return that it is not.
func (c ServicesResource) ApproveHost(ctx context.Context, service, nodeID string) (bool, error) {
	return c.setApproval(ctx, service, nodeID, true)
}

// RefuseHost withdraws the permission of a device to host a service. It returns whether the device is still
// approved: no document says what an autoApprover of the policy file does to a device that was refused.
func (c ServicesResource) RefuseHost(ctx context.Context, service, nodeID string) (bool, error) {
	return c.setApproval(ctx, service, nodeID, false)
}

// setApproval approves or refuses a device, and returns whether it is approved after that.
func (c ServicesResource) setApproval(ctx context.Context, service, nodeID string, approved bool) (bool, error) {
	if err := c.checkService(service); err != nil {
		return false, err
	}
	path := []string{"tailnet", c.tailnet, "services", service, "device", nodeID, "approved"}
	a, err := c.do(ctx, request{scope: scopeHosts, method: http.MethodPost, path: path, body: fmt.Appendf(nil, `{"approved":%t}`, approved)})
	var out struct {
		Approved *bool `json:"approved"`
	}
	if err != nil || json.Unmarshal(a.body, &out) != nil {
		// A response of another form does not contradict the request.
		return approved && err == nil, err
	}
	if out.Approved == nil {
		return approved, nil
	}
	return *out.Approved, nil
}

// A hostState is the state of a host. It is a string in all known versions of the API; a boolean is
// accepted as well.
type hostState string

// UnmarshalJSON keeps a string unchanged. It reads true as HostReady, and all other values as an
// empty string, so that a host in an unknown state is not lost.
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

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// listServices leaves the list out when there is none, as listHosts does: for
// services that is an assumption.
func listServices(c *call) {
	var out struct {
		Services []*service `json:"vipServices,omitempty"`
	}
	for _, n := range slices.Sorted(maps.Keys(c.s.st.Services)) {
		out.Services = append(out.Services, c.s.st.Services[n])
	}
	c.json(out)
}

// service finds the service of the path, or answers 404. The name of a machine is
// answered 400 (tailscale/tailscale#19922).
func (c *call) service() *service {
	name := c.r.PathValue("service")
	v := c.s.st.Services[name]
	switch {
	case v != nil:
	case c.s.st.machineHas(name):
		c.fail(http.StatusBadRequest, "name exists but is not a service")
	default:
		c.fail(http.StatusNotFound, "service not found")
	}
	return v
}

// machineHas reports whether a machine has the name of a service.
func (st *state) machineHas(service string) bool {
	l, ok := strings.CutPrefix(service, "svc:")
	if !ok {
		return false
	}
	for _, d := range st.Devices {
		if d.Label == l {
			return true
		}
	}
	return false
}

func getService(c *call) {
	if v := c.service(); v != nil {
		c.json(v)
	}
}

// putService creates or replaces a service: absent fields of the body are removed. A name in
// the body that differs from the path's renames an existing service.
func putService(c *call) {
	v := &service{}
	if !c.decode(v) {
		return
	}
	name := c.r.PathValue("service")
	v.Name = cmp.Or(v.Name, name)
	old := c.s.st.Services[name]
	if old == nil && v.Name != name {
		c.fail(http.StatusBadRequest, "service name in body does not match path")
		return
	}
	if err := errors.Join(v.validate(), c.s.switches.Annotations.validate(v.Annotations)); err != nil {
		c.fail(http.StatusBadRequest, err.Error())
		return
	}
	if !nameIsFree(c, v, old) || !c.ownsTags(added(v, old)) || !withinQuota(c, old) {
		return
	}
	var err error
	if old == nil {
		err = c.s.allocateLocked(v)
	} else {
		err = c.s.readdressLocked(v, old)
	}
	if err != nil {
		c.fail(http.StatusBadRequest, err.Error())
		return
	}
	v.canonical()
	if old != nil && name != v.Name {
		delete(c.s.st.Services, name)
		c.s.st.Approvals[v.Name] = c.s.st.Approvals[name]
		delete(c.s.st.Approvals, name)
	}
	c.s.st.Services[v.Name] = v
	if old == nil {
		c.s.defineLocked(v.Name)
	}
	c.s.servicesChangedLocked()
	c.json(v)
}

// nameIsFree reports whether a service may have the requested name, and responds with an error
// if not (tailscale/tailscale#17693). It is an assumption that the name of another service is
// refused in the same way.
func nameIsFree(c *call, v, old *service) bool {
	if old != nil && old.Name == v.Name {
		return true
	}
	switch {
	case c.s.st.machineHas(v.Name):
		c.fail(http.StatusConflict, "name is in use but is not a service")
		return false
	case c.s.st.Services[v.Name] != nil:
		c.fail(http.StatusConflict, "name is in use by another service")
		return false
	}
	return true
}

// withinQuota reports whether a service is an old one or may be added, and answers
// if not.
func withinQuota(c *call, old *service) bool {
	q := c.s.switches.ServiceQuota
	if old != nil || q == 0 || len(c.s.st.Services) < q {
		return true
	}
	c.fail(http.StatusForbidden, "the tailnet has the maximum number of services")
	return false
}

// added returns the tags of v that old has not.
func added(v, old *service) []string {
	var out []string
	for _, t := range v.Tags {
		if old == nil || !slices.Contains(old.Tags, t) {
			out = append(out, t)
		}
	}
	return out
}

func deleteService(c *call) {
	v := c.service()
	if v == nil {
		return
	}
	delete(c.s.st.Services, v.Name)
	delete(c.s.st.Approvals, v.Name)
	c.s.st.FormerAddrs[v.Addrs[0]] = true
	c.s.servicesChangedLocked()
	c.ok()
}

// A ServiceEdit is a change of a service by a user.
type ServiceEdit struct {
	Comment     *string  `json:"comment,omitempty"`
	DisplayName *string  `json:"displayName,omitempty"`
	Ports       []string `json:"ports,omitempty"`
	Tags        []string `json:"tags,omitempty"`
}

// EditService changes a service as the Terraform provider does, which knows no
// annotations and so drops them (tailscale/terraform-provider-tailscale,
// resource_service.go). That the admin console does the same is an assumption.
func (s *Server) EditService(name string, e ServiceEdit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.st.Services[name]
	if old == nil {
		return errors.Errorf("there is no service %q", name)
	}
	v := old.clone()
	v.Annotations = nil
	if e.Comment != nil {
		v.Comment = *e.Comment
	}
	if e.DisplayName != nil {
		v.DisplayName = *e.DisplayName
	}
	if e.Ports != nil {
		v.Ports = e.Ports
	}
	if e.Tags != nil {
		v.Tags = e.Tags
	}
	if err := v.validate(); err != nil {
		return err
	}
	v.canonical()
	s.st.Services[name] = v
	s.servicesChangedLocked()
	return nil
}

// listHosts leaves the list out when there is none (abn/ansible-tailscale-admin,
// tests/live/test_service_module_live.py).
func listHosts(c *call) {
	v := c.service()
	if v == nil {
		return
	}
	c.json(struct {
		Hosts []host `json:"hosts,omitempty"`
	}{c.s.hostsLocked(v)})
}

// hostOf finds service and device of the path, or answers 404.
func hostOf(c *call) (*service, *device) {
	v := c.service()
	if v == nil {
		return nil, nil
	}
	d := c.device()
	if d == nil {
		return nil, nil
	}
	return v, d
}

func getApproval(c *call) {
	v, d := hostOf(c)
	if v == nil {
		return
	}
	level, auto := c.s.approvalLocked(v, d)
	c.json(map[string]any{"approved": level != notApproved, "autoApproved": auto})
}

// setApproval approves or refuses a device, whether it advertises yet or not: the
// admin console calls such a device pre-approved
// (https://tailscale.com/docs/features/tailscale-services), and
// abn/ansible-tailscale-admin approves devices that host nothing
// (tests/live/test_service_module_live.py).
func setApproval(c *call) {
	v, d := hostOf(c)
	if v == nil {
		return
	}
	var req struct {
		Approved *bool `json:"approved"`
	}
	if !c.decode(&req) {
		return
	}
	if req.Approved == nil {
		c.fail(http.StatusBadRequest, "approved must be set")
		return
	}
	previous, _ := c.s.approvalLocked(v, d)
	if c.s.st.Approvals[v.Name] == nil {
		c.s.st.Approvals[v.Name] = map[int64]bool{}
	}
	c.s.st.Approvals[v.Name][d.ID] = *req.Approved
	if *req.Approved && previous == notApproved && c.s.switches.ApprovalNeedsAdvertise && offering(v, d) {
		d.unheard[v.Name] = true
	}
	c.s.hostsChangedLocked()
	getApproval(c)
}

// An Offer is a service that a puppet serves.
type Offer struct {
	// Service, as svc:web.
	Service string `json:"service"`
	// Ports of TCP that the puppet serves.
	Ports []uint16 `json:"ports,omitempty"`
	// Withdrawn puppets serve and do not advertise.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// SetOffers has a puppet serve these services and no others.
func (s *Server) SetOffers(nodeID string, offers ...Offer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.st.device(nodeID)
	if d == nil {
		return errors.Errorf("there is no device %q", nodeID)
	}
	m := make(map[string]*tailcfg.VIPService, len(offers))
	for _, o := range offers {
		v := &tailcfg.VIPService{Name: tailcfg.ServiceName(o.Service), Active: !o.Withdrawn}
		for _, p := range o.Ports {
			v.Ports = append(v.Ports, tailcfg.ProtoPortRange{Proto: 6, Ports: tailcfg.PortRange{First: p, Last: p}})
		}
		m[o.Service] = v
	}
	s.takeOffersLocked(d, m)
	s.hostsChangedLocked()
	return nil
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
)

func (c *call) listServices() {
	out := []*service{}
	for _, n := range slices.Sorted(maps.Keys(c.s.st.Services)) {
		out = append(out, c.s.st.Services[n])
	}
	c.json(map[string]any{"vipServices": out})
}

// service finds the service of the path, or answers 404.
func (c *call) service() *service {
	v := c.s.st.Services[c.r.PathValue("service")]
	if v == nil {
		c.fail(http.StatusNotFound, "service not found")
	}
	return v
}

func (c *call) getService() {
	if v := c.service(); v != nil {
		c.json(v)
	}
}

// putService creates or replaces. A name in the body that differs from the
// path's renames an existing service.
func (c *call) putService() {
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
	if err := v.validate(); err != nil {
		c.fail(http.StatusBadRequest, err.Error())
		return
	}
	if (old == nil || v.Name != name) && c.s.st.labelTaken(v.Name[len("svc:"):], nil) {
		c.fail(http.StatusConflict, "service name is already in use by a service or machine")
		return
	}
	var newTags []string
	for _, t := range v.Tags {
		if old == nil || !slices.Contains(old.Tags, t) {
			newTags = append(newTags, t)
		}
	}
	if !c.ownsTags(newTags) {
		return
	}
	if old == nil {
		if err := c.s.st.allocate(v); err != nil {
			c.fail(http.StatusBadRequest, err.Error())
			return
		}
	} else if !slices.Equal(v.Addrs, old.Addrs) {
		c.fail(http.StatusBadRequest, "addrs of an existing service cannot be changed or omitted")
		return
	}
	v = v.clone()
	if old != nil && name != v.Name {
		delete(c.s.st.Services, name)
		c.s.st.Approvals[v.Name] = c.s.st.Approvals[name]
		delete(c.s.st.Approvals, name)
	}
	c.s.st.Services[v.Name] = v
	c.s.changedLocked()
	c.json(v)
}

func (c *call) deleteService() {
	v := c.service()
	if v == nil {
		return
	}
	delete(c.s.st.Services, v.Name)
	delete(c.s.st.Approvals, v.Name)
	c.s.changedLocked()
	c.ok()
}

// A host is a device that advertises a service.
type host struct {
	StableNodeID  string `json:"stableNodeID"`
	ApprovalLevel string `json:"approvalLevel"`
	Configured    bool   `json:"configured"`
}

func (s *Server) hostsLocked(v *service) []host {
	out := []host{}
	for _, id := range slices.Sorted(maps.Keys(s.st.Devices)) {
		d := s.st.Devices[id]
		if !offering(v, d) {
			continue
		}
		level, _ := s.approvalLocked(v, d)
		out = append(out, host{StableNodeID: string(d.StableID), ApprovalLevel: level, Configured: configured(v, d)})
	}
	return out
}

func (c *call) listHosts() {
	if v := c.service(); v != nil {
		c.json(map[string]any{"hosts": c.s.hostsLocked(v)})
	}
}

// hostOf finds service and device of the path, or answers 404.
func (c *call) hostOf() (*service, *device) {
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

func (c *call) getApproval() {
	v, d := c.hostOf()
	if v == nil {
		return
	}
	level, auto := c.s.approvalLocked(v, d)
	c.json(map[string]any{"approved": level != notApproved, "autoApproved": auto})
}

func (c *call) setApproval() {
	v, d := c.hostOf()
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
	if c.s.st.Approvals[v.Name] == nil {
		c.s.st.Approvals[v.Name] = map[int64]bool{}
	}
	c.s.st.Approvals[v.Name][d.ID] = *req.Approved
	c.s.changedLocked()
	c.getApproval()
}

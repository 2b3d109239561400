// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"net/http"
	"slices"
)

// tailnetID and organizationID are made up: the one tailnet has them always.
const (
	tailnetID      = "TSimTest11CNTRL"
	organizationID = "oSimTest11CNTRL"
)

// listTailnets lists the tailnets of the credential's organization. The real API lists only
// those that were created by API, unless the credential is the organization's.
func (c *call) listTailnets() {
	c.json(map[string]any{"tailnets": []any{map[string]any{
		"id": tailnetID, "displayName": c.s.opts.Tailnet, "orgId": organizationID,
		"dnsName": c.s.opts.Domain, "createdAt": "2026-01-01T00:00:00Z",
	}}})
}

// ownerID is made up too.
const ownerID = "uSimOwner11CNTRL"

// Values of the filters of the list of users (OpenAPI: paths./tailnet/{tailnet}/users).
var (
	userTypes = []string{"", "all", "member", "shared"}
	userRoles = []string{"", "all", "admin", "auditor", "billing-admin", "it-admin", "member", "network-admin", "owner"}
)

// users lists the users of the tailnet: only its owner.
func (c *call) users() []map[string]any {
	p := c.s.profile(userOwner)
	devices, online := 0, false
	for _, d := range c.s.st.Devices {
		if d.user() == userOwner {
			devices++
			online = online || d.online
		}
	}
	return []map[string]any{{
		"id": ownerID, "displayName": p.DisplayName, "loginName": p.LoginName, "profilePicUrl": "", "tailnetId": tailnetID,
		"created": "2026-01-01T00:00:00Z", "type": "member", "role": "owner", "status": "active",
		"deviceCount": devices, "lastSeen": "2026-01-01T00:00:00Z", "currentlyConnected": online,
	}}
}

// listUsers filters by type, members by default, and by role.
func (c *call) listUsers() {
	q := c.r.URL.Query()
	kind, role := q.Get("type"), q.Get("role")
	if !slices.Contains(userTypes, kind) || !slices.Contains(userRoles, role) {
		c.fail(http.StatusBadRequest, "invalid type or role")
		return
	}
	out := []map[string]any{}
	for _, u := range c.users() {
		if (kind == "all" || u["type"] == cmp.Or(kind, "member")) && (role == "" || role == "all" || u["role"] == role) {
			out = append(out, u)
		}
	}
	c.json(map[string]any{"users": out})
}

func (c *call) getUser() {
	for _, u := range c.users() {
		if u["id"] == c.r.PathValue("user") {
			c.json(u)
			return
		}
	}
	c.fail(http.StatusNotFound, "user not found")
}

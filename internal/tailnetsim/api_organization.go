// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// defaultTailnetID and organizationID are made up.
const (
	defaultTailnetID = "TSimTest11CNTRL"
	organizationID   = "oSimTest11CNTRL"
)

// An apiTailnet is a tailnet of the organization that was created by API. It is only an entry: the
// simulator is one tailnet.
type apiTailnet struct {
	ID          string    `json:"id"`
	DisplayName string    `json:"displayName"`
	CreatedAt   time.Time `json:"createdAt"`
}

func (t apiTailnet) view() map[string]any {
	return map[string]any{
		"id": t.ID, "displayName": t.DisplayName, "orgId": organizationID,
		"dnsName": "tail" + strings.ToLower(t.ID[1:7]) + ".ts.net", "createdAt": t.CreatedAt,
	}
}

// listTailnets lists the tailnets of the credential's organization. The real API lists only
// those that were created by API, unless the credential is the organization's.
func listTailnets(c *call) {
	out := []any{map[string]any{
		"id": c.s.opts.TailnetID, "displayName": c.s.opts.Tailnet, "orgId": organizationID,
		"dnsName": c.s.opts.Domain, "createdAt": "2026-01-01T00:00:00Z",
	}}
	for _, t := range c.s.st.Tailnets {
		out = append(out, t.view())
	}
	c.json(map[string]any{"tailnets": out})
}

// createTailnet creates an API-only tailnet, and returns an OAuth client of it (client v2.12.0,
// tailnet.go).
func createTailnet(c *call) {
	var req struct {
		DisplayName string `json:"displayName"`
	}
	if !c.decode(&req) {
		return
	}
	if req.DisplayName == "" {
		c.fail(http.StatusBadRequest, "displayName must be set")
		return
	}
	t := apiTailnet{ID: "T" + strings.ToUpper(randomHex(6)) + "CNTRL", DisplayName: req.DisplayName, CreatedAt: c.s.now().UTC().Truncate(time.Second)}
	c.s.st.Tailnets = append(c.s.st.Tailnets, t)
	c.s.dirty()
	v, id := t.view(), "k"+randomHex(6)+"CNTRL"
	v["oauthClient"] = map[string]any{"id": id, "secret": "tskey-client-" + id + "-" + randomHex(16)}
	c.json(v)
}

// deleteTailnet refuses the simulator's tailnet, which was not created by API. The status is an
// assumption.
func deleteTailnet(c *call) {
	c.fail(http.StatusForbidden, "only tailnets that were created by API can be deleted")
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
		"id": ownerID, "displayName": p.DisplayName, "loginName": p.LoginName, "profilePicUrl": "", "tailnetId": c.s.opts.TailnetID,
		"created": "2026-01-01T00:00:00Z", "type": "member", "role": "owner", "status": "active",
		"deviceCount": devices, "lastSeen": "2026-01-01T00:00:00Z", "currentlyConnected": online,
	}}
}

// listUsers filters by type, members by default, and by role.
func listUsers(c *call) {
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

func getUser(c *call) {
	for _, u := range c.users() {
		if u["id"] == c.r.PathValue("user") {
			c.json(u)
			return
		}
	}
	c.fail(http.StatusNotFound, "user not found")
}

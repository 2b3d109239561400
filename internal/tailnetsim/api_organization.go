// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

// tailnetID and organizationID are made up: the one tailnet has them always.
const (
	tailnetID      = "TSimTest11CNTRL"
	organizationID = "oSimTest11CNTRL"
)

// listTailnets of the credential's organization. The real answer has only those
// that were made by API, unless the credential is the organization's.
func (c *call) listTailnets() {
	c.json(map[string]any{"tailnets": []any{map[string]any{
		"id": tailnetID, "displayName": c.s.opts.Tailnet, "orgId": organizationID,
		"dnsName": c.s.opts.Domain, "createdAt": "2026-01-01T00:00:00Z",
	}}})
}

func (c *call) listUsers() {
	p := c.s.profile(userOwner)
	c.json(map[string]any{"users": []any{map[string]any{
		"id": "1", "displayName": p.DisplayName, "loginName": p.LoginName, "role": "owner", "status": "active", "type": "member",
	}}})
}

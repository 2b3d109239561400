// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/http"
	"slices"
)

// Bounds of devicesKeyDurationDays, as the API documents them.
const (
	minKeyDays = 1
	maxKeyDays = 180
)

func defaultSettings() map[string]any {
	return map[string]any{
		"aclsExternallyManagedOn": false, "aclsExternalLink": "",
		"devicesApprovalOn": false, "devicesAutoUpdatesOn": false, "devicesKeyDurationDays": float64(maxKeyDays),
		"usersApprovalOn": false, "usersRoleAllowedToJoinExternalTailnets": "admin",
		"networkFlowLoggingOn": false, "regionalRoutingOn": false, "postureIdentityCollectionOn": false,
		"httpsEnabled": false, "routeSelection": activePassive,
	}
}

// settingScope is the scope that a setting needs. Each is authorised alone.
func settingScope(name string) string {
	switch name {
	case "aclsExternallyManagedOn", "aclsExternalLink":
		return "policy_file"
	case "networkFlowLoggingOn":
		return "logs:network"
	case "httpsEnabled":
		return "networking_settings"
	}
	return "feature_settings"
}

// getSettings responds with null for settings that the actor may not read, and 403 to an actor
// that may read none.
func (c *call) getSettings() {
	out, some := map[string]any{}, false
	for k, v := range c.s.st.Settings {
		out[k] = nil
		if c.actor.allows(settingScope(k), true) {
			out[k], some = v, true
		}
	}
	if !some {
		c.forbid()
		return
	}
	c.json(out)
}

// patchSettings changes the settings in the body that are not null, all or none of them.
func (c *call) patchSettings() {
	req := map[string]any{}
	if !c.decode(&req) {
		return
	}
	for _, k := range slices.Sorted(maps.Keys(req)) {
		old, ok := c.s.st.Settings[k]
		if !ok {
			c.fail(http.StatusBadRequest, "unknown setting "+k)
			return
		}
		if req[k] == nil {
			continue
		}
		if !c.actor.allows(settingScope(k), false) {
			c.forbid()
			return
		}
		if !validSetting(k, old, req[k]) {
			c.fail(http.StatusBadRequest, "invalid value of setting "+k)
			return
		}
	}
	if req["regionalRoutingOn"] != nil && req["routeSelection"] != nil {
		// That this is refused: tailscale.com/client/tailscale/v2 v2.12.0, tailnet_settings.go. The
		// words are an assumption.
		c.fail(http.StatusBadRequest, "regionalRoutingOn and routeSelection must not both be set")
		return
	}
	for k, v := range req {
		if v != nil {
			c.s.st.Settings[k] = v
		}
	}
	c.s.alignRouting(req["regionalRoutingOn"])
	c.s.changedLocked()
	c.getSettings()
}

// alignRouting keeps routeSelection and its older form regionalRoutingOn, which is whether
// routeSelection is regional-routing, the same (tailnet_settings.go, as above). That switching off
// what is not on changes nothing is an assumption.
func (s *Server) alignRouting(on any) {
	st := s.st.Settings
	switch {
	case on == true:
		st["routeSelection"] = regional
	case on == false && st["routeSelection"] == regional:
		st["routeSelection"] = activePassive
	}
	st["regionalRoutingOn"] = st["routeSelection"] == regional
}

// validSetting reports whether v may replace old.
func validSetting(name string, old, v any) bool {
	switch v := v.(type) {
	case bool:
		_, ok := old.(bool)
		return ok
	case float64:
		_, ok := old.(float64)
		return ok && v >= minKeyDays && v <= maxKeyDays
	case string:
		_, ok := old.(string)
		switch name {
		case "usersRoleAllowedToJoinExternalTailnets":
			return slices.Contains([]string{"none", "admin", "member"}, v)
		case "routeSelection":
			return slices.Contains(routeSelections, v)
		}
		return ok
	}
	return false
}

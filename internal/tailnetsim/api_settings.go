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
		"httpsEnabled": false, settingRouteSelection: string(ActivePassiveFailover),
	}
}

const (
	settingRouteSelection  = "routeSelection"
	settingRegionalRouting = "regionalRoutingOn"
)

// routeSelection returns the route selection of the tailnet.
func (st *state) routeSelection() RouteSelection {
	v, ok := st.Settings[settingRouteSelection].(string)
	if !ok {
		return ActivePassiveFailover
	}
	return RouteSelection(v)
}

// setRouting sets a setting of routing together with the one that depends on it: regionalRoutingOn
// "conveys whether a tailnet's RouteSelection is set to RegionalRouting", and can still be updated
// (client v2.12.0, tailnet_settings.go). That false leaves the other selections is an assumption.
func (st *state) setRouting(name string, v any) {
	st.Settings[name] = v
	enabled, _ := v.(bool)
	switch regional := st.routeSelection() == RegionalRouting; {
	case name == settingRegionalRouting && enabled:
		st.Settings[settingRouteSelection] = string(RegionalRouting)
	case name == settingRegionalRouting && regional:
		st.Settings[settingRouteSelection] = string(ActivePassiveFailover)
	}
	st.Settings[settingRegionalRouting] = st.routeSelection() == RegionalRouting
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
func getSettings(c *call) {
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
func patchSettings(c *call) {
	req := map[string]any{}
	if !c.decode(&req) {
		return
	}
	// "Requests must not specify both" (client v2.12.0, tailnet_settings.go). The words of the refusal
	// are an assumption.
	if req[settingRouteSelection] != nil && req[settingRegionalRouting] != nil {
		c.fail(http.StatusBadRequest, "regionalRoutingOn and routeSelection cannot both be set")
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
	for k, v := range req {
		switch {
		case v == nil:
		case k == settingRouteSelection || k == settingRegionalRouting:
			c.s.st.setRouting(k, v)
		default:
			c.s.st.Settings[k] = v
		}
	}
	c.s.changedLocked()
	getSettings(c)
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
		case settingRouteSelection:
			return slices.Contains(routeSelections, RouteSelection(v))
		case "usersRoleAllowedToJoinExternalTailnets":
			return slices.Contains([]string{"none", "admin", "member"}, v)
		}
		return ok
	}
	return false
}

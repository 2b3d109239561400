// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// OAuth scopes of settings, one for each. Source: the description of PATCH
// /tailnet/{tailnet}/settings in Tailscale's OpenAPI document.
const (
	scopeSettings = "feature_settings"
	scopeHTTPS    = "networking_settings"
	scopeFlowLogs = "logs:network"
	scopePolicy   = "policy_file"
)

// Settings are the settings of a tailnet with their names in the API. In a write, a nil setting
// stays unchanged; in a read, nil means that the credential has no access to the setting. The
// client library would return false for it.
type Settings struct {
	HTTPSEnabled                           *bool   `json:"httpsEnabled,omitempty"`
	DevicesApprovalOn                      *bool   `json:"devicesApprovalOn,omitempty"`
	DevicesAutoUpdatesOn                   *bool   `json:"devicesAutoUpdatesOn,omitempty"`
	DevicesKeyDurationDays                 *int32  `json:"devicesKeyDurationDays,omitempty"`
	UsersApprovalOn                        *bool   `json:"usersApprovalOn,omitempty"`
	UsersRoleAllowedToJoinExternalTailnets *string `json:"usersRoleAllowedToJoinExternalTailnets,omitempty"`
	NetworkFlowLoggingOn                   *bool   `json:"networkFlowLoggingOn,omitempty"`
	RegionalRoutingOn                      *bool   `json:"regionalRoutingOn,omitempty"`
	RouteSelection                         *string `json:"routeSelection,omitempty"`
	PostureIdentityCollectionOn            *bool   `json:"postureIdentityCollectionOn,omitempty"`
	ACLsExternallyManagedOn                *bool   `json:"aclsExternallyManagedOn,omitempty"`
	ACLsExternalLink                       *string `json:"aclsExternalLink,omitempty"`
}

// A TailnetResource calls the API for the tailnet itself: its settings, contacts, name and organization,
// and the credential.
type TailnetResource struct{ *core }

// Settings returns the tailnet's settings from a shared response.
func (c TailnetResource) Settings(ctx context.Context, staleness Staleness) (Settings, error) {
	return c.values.settings.get(ctx, c.maxAge(staleness))
}

func (c TailnetResource) loadSettings(ctx context.Context) (Settings, error) {
	var s Settings
	_, err := c.rawJSON(ctx, request{scope: scopeSettings + ":read", method: http.MethodGet, path: []string{"tailnet", c.tailnet, "settings"}, tailnet: true}, &s)
	// The API returns an empty object if the credential has no access to any setting.
	if err == nil && s == (Settings{}) {
		return s, &Error{Class: ClassUnavailable, Scope: scopeSettings + ":read", Message: "its answer has no settings"}
	}
	return s, err
}

// PatchSettings changes the settings that are not nil. It sends one call per scope, so that a scope
// that the credential lacks does not prevent other changes. It returns the first error.
func (c TailnetResource) PatchSettings(ctx context.Context, s Settings) error {
	all, err := s.named()
	if err != nil {
		return err
	}
	scoped := map[string]map[string]json.RawMessage{}
	for name, v := range all {
		scope := scopeOfSetting(name)
		if scoped[scope] == nil {
			scoped[scope] = map[string]json.RawMessage{}
		}
		scoped[scope][name] = v
	}
	var first error
	for _, scope := range slices.Sorted(maps.Keys(scoped)) {
		if err := c.raw(ctx, scope, http.MethodPatch, scoped[scope], nil, "tailnet", c.tailnet, "settings"); err != nil && first == nil {
			first = err
		}
	}
	c.values.settings.expire()
	return first
}

// Names of two settings that stand for the same one: the API keeps the older name, and refuses both
// in one request (client library, tailnet_settings.go).
const (
	settingRegionalRouting = "regionalRoutingOn"
	settingRouteSelection  = "routeSelection"
)

// Names returns the API names of the settings that are not nil, sorted. regionalRoutingOn has the
// name of routeSelection, so that two objects cannot set both.
func (s Settings) Names() ([]string, error) {
	all, err := s.named()
	if v, ok := all[settingRegionalRouting]; ok {
		delete(all, settingRegionalRouting)
		all[settingRouteSelection] = v
	}
	return slices.Sorted(maps.Keys(all)), err
}

// Without returns the settings except for the named ones, with names as Names returns them.
func (s Settings) Without(names ...string) (Settings, error) {
	all, err := s.named()
	if err != nil {
		return Settings{}, err
	}
	for _, n := range names {
		delete(all, n)
		if n == settingRouteSelection {
			delete(all, settingRegionalRouting)
		}
	}
	return settingsOf(all)
}

// Change returns the settings to write so that current becomes wanted, and the scopes that are
// missing to read the wanted settings, sorted.
func Change(wanted, current Settings) (Settings, []string, error) {
	w, err := wanted.named()
	if err != nil {
		return Settings{}, nil, err
	}
	cur, err := current.named()
	if err != nil {
		return Settings{}, nil, err
	}
	visible := map[string]bool{}
	for name := range cur {
		visible[scopeOfSetting(name)] = true
	}
	hidden := map[string]bool{}
	for name, v := range w {
		scope := scopeOfSetting(name)
		switch {
		case !visible[scope]:
			hidden[scope] = true
			delete(w, name)
		case bytes.Equal(v, cur[name]), cur[name] == nil && bytes.Equal(v, []byte(`""`)):
			delete(w, name)
		}
	}
	s, err := settingsOf(w)
	return s, slices.Sorted(maps.Keys(hidden)), err
}

// named returns the settings that are not nil by their names.
func (s Settings) named() (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode settings")
	}
	return out, errors.Wrap(json.Unmarshal(b, &out), "cannot decode settings")
}

func settingsOf(named map[string]json.RawMessage) (Settings, error) {
	var s Settings
	b, err := json.Marshal(named)
	if err != nil {
		return s, errors.Wrap(err, "cannot encode settings")
	}
	return s, errors.Wrap(json.Unmarshal(b, &s), "cannot decode settings")
}

func scopeOfSetting(name string) string {
	switch name {
	case "httpsEnabled":
		return scopeHTTPS
	case "networkFlowLoggingOn":
		return scopeFlowLogs
	case "aclsExternallyManagedOn", "aclsExternalLink":
		return scopePolicy
	}
	return scopeSettings
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tailscale-gateway/tailscale-gateway/extension/hooks"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// A Setting is a cluster that some routes to a target share, because Envoy Gateway made other
// settings for them than those of the target's common cluster.
type Setting struct {
	// Cluster is TARGET/settings/HASH.
	Cluster string `json:"cluster"`

	// Differs are the fields in which it differs from the common cluster.
	Differs []string `json:"differs,omitempty"`
}

// Settings holds the settings in this replica's translations, by Gateway. The zero value is empty.
type Settings struct {
	mu        sync.Mutex
	byGateway map[string][]hooks.Settings
}

// Translated replaces the settings of a Gateway by those of a new translation.
func (s *Settings) Translated(gateway string, settings []hooks.Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byGateway == nil {
		s.byGateway = map[string][]hooks.Settings{}
	}
	if len(settings) == 0 {
		delete(s.byGateway, gateway)
		return
	}
	s.byGateway[gateway] = settings
}

// find returns the settings that fulfil a condition, each cluster once, by name. A nil Settings has
// none.
func (s *Settings) find(keep func(hooks.Settings) bool) []Setting {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]Setting{}
	for _, settings := range s.byGateway {
		for _, setting := range settings {
			if keep(setting) {
				found[setting.Cluster] = Setting{Cluster: setting.Cluster, Differs: setting.Differs}
			}
		}
	}
	var out []Setting
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// describe adds the settings of a rule, or of a whole L4 route, to its backends. A backend with
// exactly one setting uses that cluster.
func (s *Settings) describe(rule *Rule) {
	for i := range rule.Backends {
		b := &rule.Backends[i]
		b.Settings = s.find(func(setting hooks.Settings) bool {
			return routeName(setting.Route) == rule.Route && (setting.Rule == rule.Index || setting.Rule < 0) && setting.Target.ClusterName() == b.Target
		})
		if len(b.Settings) == 1 {
			b.Cluster = b.Settings[0].Cluster
		}
	}
}

// describeTarget adds all settings of routes to a target.
func (s *Settings) describeTarget(b *Backend) {
	b.Settings = s.find(func(setting hooks.Settings) bool { return setting.Target.ClusterName() == b.Target })
}

// target returns the target for a filter: the name of a cluster with settings stands for its
// target.
func target(filter string) string {
	name, _, _ := strings.Cut(filter, hooks.SettingsSegment)
	return name
}

// leadsTo reports whether the name of a backend's target contains a text.
func leadsTo(b ir.BackendRef, kind ir.RouteKind, text string) bool {
	return b.Ours() && strings.Contains(b.Target(kind).ClusterName(), text)
}

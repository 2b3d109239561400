// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// pageSize is the number of rules, and of targets, on a page.
	pageSize = 50

	// maxTrouble is the greatest number of listed targets without an answer.
	maxTrouble = 50
)

// An Overview is a page of a snapshot.
type Overview struct {
	Revision uint64 `json:"revision"`

	// Gateways that routes attach to, sorted.
	Gateways []Gateway `json:"gateways"`

	// Filter selects rules and generated routes that contain it in the name of the route or of a
	// backend, in a hostname or a listener. Empty selects all.
	Filter string `json:"filter,omitempty"`

	// Rules of this page, and their number on all pages.
	Rules []Listed `json:"rules"`
	Total int      `json:"total"`

	// Page from 1, of Pages.
	Page  int `json:"page"`
	Pages int `json:"pages"`

	// Trouble are the targets that answer no request, at most 50 of them.
	Trouble []Backend `json:"trouble"`
	Targets int       `json:"targets"`

	// Generated routes that contain the filter, at most 50 of them, and their number. Those that do
	// not answer come first.
	Generated      []Generated `json:"generated"`
	TotalGenerated int         `json:"totalGenerated"`
}

// A Gateway that routes attach to.
type Gateway struct {
	Name   string `json:"name"`
	Routes int    `json:"routes"`

	// Listeners that routes name.
	Listeners []string `json:"listeners"`

	// Class of the Gateway, and all of its listeners: NAME: PROTOCOL PORT, with a hostname if there
	// is one. Empty if the Gateway does not exist.
	Class   string   `json:"class,omitempty"`
	Sockets []string `json:"sockets,omitempty"`
}

// A Listed rule.
type Listed struct {
	Rule

	Hostnames []string `json:"hostnames,omitempty"`
	Gateways  []string `json:"gateways"`
}

// Describe returns a page of a snapshot. A page number outside the range means the nearest page.
func Describe(s *ir.Snapshot, filter string, page int) Overview {
	type entry struct {
		route *ir.Route
		rule  int
	}
	routes := sortedRoutes(s)
	var all []entry
	for _, r := range routes {
		for i := range r.Rules {
			if holds(r, &r.Rules[i], filter) {
				all = append(all, entry{route: r, rule: i})
			}
		}
	}
	o := Overview{
		Revision: s.Revision,
		Gateways: gateways(s, routes),
		Filter:   filter,
		Rules:    []Listed{},
		Total:    len(all),
		Pages:    max(1, (len(all)+pageSize-1)/pageSize),
		Trouble:  []Backend{},
	}
	o.Page = min(max(page, 1), o.Pages)
	first := (o.Page - 1) * pageSize
	for _, e := range all[first:min(first+pageSize, len(all))] {
		l := Listed{Rule: describeRule(s, e.route, e.rule), Hostnames: e.route.Info.Hostnames, Gateways: []string{}}
		for _, g := range e.route.Gateways {
			l.Gateways = append(l.Gateways, g.String())
		}
		o.Rules = append(o.Rules, l)
	}
	targets := sortedTargets(s)
	o.Targets = len(targets)
	for _, t := range targets {
		if t.Problem == "" || len(o.Trouble) == maxTrouble {
			continue
		}
		b := Backend{Name: t.Key.ClusterName(), Target: t.Key.ClusterName(), Cluster: t.Key.ClusterName()}
		describeTarget(&b, t)
		o.Trouble = append(o.Trouble, b)
	}
	return o
}

// holds reports whether the filter's text occurs in the identifying fields of a rule.
func holds(r *ir.Route, rule *ir.Rule, filter string) bool {
	if filter == "" || strings.Contains(routeName(r.Key), filter) {
		return true
	}
	contains := func(s string) bool { return strings.Contains(s, filter) }
	text := target(filter)
	return slices.ContainsFunc(r.Info.Hostnames, contains) || slices.ContainsFunc(r.Info.Listeners, contains) ||
		slices.ContainsFunc(append(slices.Clone(rule.Backends), rule.Mirrors...), func(b ir.BackendRef) bool { return contains(b.String()) || leadsTo(b, r.Key.Kind, text) })
}

func gateways(s *ir.Snapshot, routes []*ir.Route) []Gateway {
	byName := map[string]*Gateway{}
	for _, r := range routes {
		for _, n := range r.Gateways {
			g := byName[n.String()]
			if g == nil {
				g = &Gateway{Name: n.String(), Listeners: []string{}}
				if about := s.Gateway(n); about != nil {
					g.Class, g.Sockets = about.Class, about.Listeners
				}
				byName[g.Name] = g
			}
			g.Routes++
			for _, l := range r.Info.Listeners {
				if !slices.Contains(g.Listeners, l) {
					g.Listeners = append(g.Listeners, l)
				}
			}
		}
	}
	out := []Gateway{}
	for _, g := range byName {
		slices.Sort(g.Listeners)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Gateway) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Previous returns the number of the previous page, or 0.
func (o Overview) Previous() int { return o.Page - 1 }

// Next returns the number of the next page, or 0.
func (o Overview) Next() int {
	if o.Page >= o.Pages {
		return 0
	}
	return o.Page + 1
}

func sortedRoutes(s *ir.Snapshot) []*ir.Route {
	return slices.SortedFunc(s.Routes(), func(a, b *ir.Route) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
}

func sortedTargets(s *ir.Snapshot) []*ir.Target {
	return slices.SortedFunc(s.Targets(), func(a, b *ir.Target) int {
		return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Namespace, b.Key.Namespace),
			cmp.Compare(a.Key.Name, b.Key.Name), cmp.Compare(a.Key.Port, b.Key.Port), cmp.Compare(a.Key.Protocol, b.Key.Protocol))
	})
}

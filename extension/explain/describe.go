// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"

	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// kindNames maps kinds to their usual spelling.
var kindNames = map[ir.RouteKind]string{
	ir.KindHTTPRoute: "HTTPRoute",
	ir.KindGRPCRoute: "GRPCRoute",
	ir.KindTCPRoute:  "TCPRoute",
	ir.KindUDPRoute:  "UDPRoute",
	ir.KindTLSRoute:  "TLSRoute",
}

// A Rule of a route.
type Rule struct {
	// Route is KIND NAMESPACE/NAME.
	Route string `json:"route"`

	// Index of the rule, from 0, and its name if it has one.
	Index int    `json:"index"`
	Name  string `json:"name,omitempty"`

	// Listeners that the route attaches to.
	Listeners []string `json:"listeners"`

	Matches  []string  `json:"matches"`
	Backends []Backend `json:"backends"`
	Mirrors  []Backend `json:"mirrors,omitempty"`

	// Own is the reason for separate clusters, if the rule or a policy requires them.
	Own string `json:"own,omitempty"`

	// Policies are the rules of TailscaleRoutePolicies that apply before, in that order, as
	// NAMESPACE/NAME RULE, with the certificate that a rule presents to backends or the reason why
	// it cannot. Policies of a single listener are not included.
	Policies []string `json:"policies,omitempty"`
}

// A Backend of a rule.
type Backend struct {
	// Name is KIND NAMESPACE/NAME:PORT.
	Name string `json:"name"`

	// Percent of the rule's requests, rounded to a tenth. The requests of a backend with a problem
	// fail.
	Percent float64 `json:"percent"`

	// Target of the backend, by the name of the cluster that routes to it share. Empty if the
	// backend is not a Tailscale backend.
	Target string `json:"target,omitempty"`

	// Cluster that gets the requests. Empty if the backend is not a Tailscale backend. With
	// patches, or with settings of one listener, the rule may have another cluster, which only
	// Envoy's configuration shows, unless Settings has it.
	Cluster string `json:"cluster,omitempty"`

	// Settings for which the rule has another cluster than the target's common one. For a target
	// without an answer these are the settings of all its routes. They come from the translations
	// of this replica.
	Settings []Setting `json:"settings,omitempty"`

	// Problem is the reason why no endpoint can answer. Empty if one can.
	Problem string `json:"problem,omitempty"`

	// Refused are the hosts that Envoys do not connect to, with the reasons, if other endpoints
	// answer.
	Refused []string `json:"refused,omitempty"`

	Check string `json:"check,omitempty"`

	// Tier of the endpoints that answer according to the extension's probes. Empty if nothing is
	// probed.
	Tier       health.Tier `json:"tier,omitempty"`
	Localities []Locality  `json:"localities,omitempty"`
}

// A Locality is a group of endpoints that get requests together.
type Locality struct {
	// Name of the backend, endpoint or attachment of the endpoints.
	Name     string `json:"name"`
	Zone     string `json:"zone,omitempty"`
	Priority uint32 `json:"priority"`

	// Meaning of the priority.
	Meaning   string     `json:"meaning"`
	Weight    uint32     `json:"weight"`
	Endpoints []Endpoint `json:"endpoints"`
}

// An Endpoint is one address.
type Endpoint struct {
	Address string `json:"address"`

	// Health that the extension sends to Envoy, which also checks the endpoint.
	Health string `json:"health"`

	// Probed is the result of the extension's probes. Absent if the endpoint is not probed.
	Probed *Probed `json:"probed,omitempty"`
}

// A Probed is the probed health of an endpoint.
type Probed struct {
	Status health.Status `json:"status"`
	Score  int           `json:"score"`

	// Reason for an unhealthy status.
	Reason string `json:"reason,omitempty"`
}

func routeName(k ir.RouteKey) string {
	return fmt.Sprintf("%s %s", kindNames[k.Kind], k.NamespacedName)
}

func describeRule(s *ir.Snapshot, r *ir.Route, i int) Rule {
	rule := &r.Rules[i]
	out := Rule{Route: routeName(r.Key), Index: i, Name: rule.Name, Listeners: r.Info.Listeners, Backends: []Backend{}, Matches: []string{}}
	if len(rule.Matches) == 0 {
		out.Matches = append(out.Matches, words(ir.Match{}, r.Key.Kind))
	}
	for _, m := range rule.Matches {
		out.Matches = append(out.Matches, words(m, r.Key.Kind))
	}
	total := uint64(0)
	for _, b := range rule.Backends {
		total += uint64(b.Weight)
	}
	switch {
	case rule.Exclusive:
		out.Own = "the rule has settings that a shared cluster cannot have, such as session persistence, or shares an L4 route with other rules"
	case s.Settings().Pinned(r.Key, rule.Name):
		out.Own = "a BackendTrafficPolicy with settings of clusters is attached to the route or to this rule"
	}
	for _, g := range r.Gateways {
		for _, p := range s.Policies().Rules(r.Key, rule.Name, g, "") {
			if name := policyRuleName(p); !slices.Contains(out.Policies, name) {
				out.Policies = append(out.Policies, name)
			}
		}
	}
	for _, b := range rule.Backends {
		d := describeBackend(s, r, b, total)
		if d.Cluster != "" && out.Own != "" {
			d.Cluster = ownCluster(s, r, i, b)
		}
		out.Backends = append(out.Backends, d)
	}
	for _, b := range rule.Mirrors {
		b.Weight = 1
		out.Mirrors = append(out.Mirrors, describeBackend(s, r, b, 1))
	}
	return out
}

// policyRuleName returns the name of a policy's rule, with the rule that it names, and with its
// certificate if it presents one.
func policyRuleName(r *ir.PolicyRule) string {
	out := r.Policy.String() + " " + r.Name
	if notice := r.DenialNotice(); notice != "" {
		return out + ": " + notice
	}
	switch n := r.Named; {
	case n == nil:
	case n.Problem != "":
		return out + ": answers 500, " + n.Problem
	default:
		out += fmt.Sprintf(": as rule %s of %s", n.Section, n)
	}
	switch c := r.Certificate; {
	case c == nil:
		return out
	case c.Problem != "":
		return out + ": answers 503, " + c.Problem
	default:
		return out + ": presents the certificate of Secret " + c.Secret.String()
	}
}

// ownCluster returns the name of a backend's separate cluster, as package hooks makes it: one for
// all backends of a rule that requires it if the extension has the endpoints of all, otherwise one
// for each.
func ownCluster(s *ir.Snapshot, r *ir.Route, i int, b ir.BackendRef) string {
	rule, kind := &r.Rules[i], r.Key.Kind
	several, together := 0, rule.Exclusive || kind == ir.KindUDPRoute
	for _, backend := range rule.Backends {
		if backend.Weight > 0 {
			several++
			together = together && backend.Kind != ir.BackendOther
		}
	}
	http := kind == ir.KindHTTPRoute || kind == ir.KindGRPCRoute
	switch {
	case http && several > 1 && together:
		return r.RuleName(i)
	case http:
		return s.RouteClusterName(r.Key, rule.Name, b.Target(kind))
	case several > 1 && !together:
		return r.Key.ClusterName(i) + "/backend/" + strconv.Itoa(b.Index)
	}
	return r.Key.ClusterName(i)
}

func describeBackend(s *ir.Snapshot, r *ir.Route, b ir.BackendRef, total uint64) Backend {
	kind := map[ir.BackendKind]string{
		ir.BackendService: "Service", ir.BackendServices: "TailscaleServices", ir.BackendEndpoints: "TailscaleEndpoints",
	}[b.Kind]
	out := Backend{Name: fmt.Sprintf("%s %s:%d", cmp.Or(kind, "Other"), b.NamespacedName, b.Port)}
	if total > 0 {
		out.Percent = math.Round(float64(b.Weight)/float64(total)*1000) / 10
	}
	if !b.Ours() {
		describeFailover(&out, s, r, b)
		return out
	}
	key := b.Target(r.Key.Kind)
	out.Target, out.Cluster = key.ClusterName(), key.ClusterName()
	t := s.Target(key)
	switch {
	case !s.Permitted(r.Key, b):
		out.Problem = fmt.Sprintf("No ReferenceGrant in namespace %s permits the reference; L4 routes can name only backends in their namespace", b.Namespace)
	case t == nil:
		out.Problem = "The target is not known yet"
	default:
		describeTarget(&out, t)
		out.Problem = cmp.Or(out.Problem, s.Certificates().Withheld(r, t))
	}
	return out
}

// describeFailover describes the other clusters of a Service, if the route fails over.
func describeFailover(out *Backend, s *ir.Snapshot, r *ir.Route, b ir.BackendRef) {
	key, ok := b.Failover(r.Key.Kind)
	if !ok || len(r.Failover) == 0 {
		return
	}
	if t := s.Target(key); t != nil {
		out.Target = key.ClusterName()
		describeTarget(out, t)
	}
}

func describeTarget(out *Backend, t *ir.Target) {
	out.Problem, out.Refused = t.Problem, t.Refused
	if h := t.Shape.HealthCheck; h != nil {
		check := "a TCP connection"
		if h.Path != "" {
			check = "GET " + h.Path
		}
		out.Check = fmt.Sprintf("%s each %s, at most %s; healthy after %d, unhealthy after %d", check, h.Interval, h.Timeout, h.Healthy, h.Unhealthy)
	}
	for _, l := range t.Localities {
		v := Locality{Name: l.Name, Zone: l.Zone, Priority: l.Priority, Meaning: meaning(l.Priority), Weight: l.Weight, Endpoints: []Endpoint{}}
		for _, e := range l.Endpoints {
			v.Endpoints = append(v.Endpoints, Endpoint{Address: net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port))), Health: healthName(e.Health)})
		}
		out.Localities = append(out.Localities, v)
	}
}

func meaning(priority uint32) string {
	if priority == ir.PriorityLocal {
		return "first"
	}
	return fmt.Sprintf("only as far as priorities below %d have too few healthy endpoints", priority)
}

func healthName(h ir.Health) string {
	switch h {
	case ir.Healthy:
		return "healthy"
	case ir.Unhealthy:
		return "unhealthy"
	case ir.Draining:
		return "draining"
	case ir.Degraded:
		return "degraded, used when no other is left"
	case ir.HealthUnknown:
	}
	return "decided by Envoy's own checks"
}

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

// kindNames as people write them.
var kindNames = map[ir.RouteKind]string{ //nolint:gochecknoglobals // A constant map.
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

	// Why its clusters are its own, if the rule or a policy asks for that.
	Own string `json:"own,omitempty"`

	// Policies are the rules of TailscaleRoutePolicies that are asked before, in that
	// order, as NAMESPACE/NAME RULE, with what it presents to backends or why it cannot.
	// Those of one listener alone are not among them.
	Policies []string `json:"policies,omitempty"`
}

// A Backend of a rule.
type Backend struct {
	// Name is KIND NAMESPACE/NAME:PORT.
	Name string `json:"name"`

	// Percent of the rule's requests, rounded to a tenth. Those of a backend that
	// has a problem fail.
	Percent float64 `json:"percent"`

	// Target is what is behind it, by the name of the cluster that routes to it share.
	// Empty if the backend is not of our kinds.
	Target string `json:"target,omitempty"`

	// Cluster that requests go to. Empty if the backend is not of our kinds. Patches, and
	// settings of one listener, may give the rule another, which only Envoy tells, unless
	// settings has it.
	Cluster string `json:"cluster,omitempty"`

	// Settings with which the rule has another cluster than the target's common one, or,
	// of a target that nobody answers for, all that its routes have. They are of hooks
	// that this replica was asked.
	Settings []Setting `json:"settings,omitempty"`

	// Problem says why nothing answers. Empty when something can.
	Problem string `json:"problem,omitempty"`

	// Refused says which hosts nobody connects to, and why, where others answer.
	Refused []string `json:"refused,omitempty"`

	Check string `json:"check,omitempty"`

	// Tier of endpoints that answers, as our probes find. Empty if nothing is probed.
	Tier       health.Tier `json:"tier,omitempty"`
	Localities []Locality  `json:"localities,omitempty"`
}

// A Locality is endpoints that get requests together.
type Locality struct {
	// Name of the backend, endpoint or attachment that they are of.
	Name     string `json:"name"`
	Zone     string `json:"zone,omitempty"`
	Priority uint32 `json:"priority"`

	// Meaning of the priority, in words.
	Meaning   string     `json:"meaning"`
	Weight    uint32     `json:"weight"`
	Endpoints []Endpoint `json:"endpoints"`
}

// An Endpoint is one address.
type Endpoint struct {
	Address string `json:"address"`

	// Health as we tell Envoy, which checks for itself.
	Health string `json:"health"`

	// Probed is what our own probes hold of it. Absent if it is not probed.
	Probed *Probed `json:"probed,omitempty"`
}

// A Probed endpoint's verdict.
type Probed struct {
	Status health.Status `json:"status"`
	Score  int           `json:"score"`

	// Reason why it is unhealthy.
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
		out.Own = "the rule asks for something that a shared cluster cannot give, such as session persistence, or shares an L4 route with other rules"
	case s.Pinned(r.Key, rule.Name):
		out.Own = "a BackendTrafficPolicy with settings of clusters is attached to the route or to this rule"
	}
	for _, g := range r.Gateways {
		for _, p := range s.PolicyRules(r.Key, rule.Name, g, "") {
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

// policyRuleName of a rule of a policy, with the rule that it names, and its certificate if
// it presents one.
func policyRuleName(r *ir.PolicyRule) string {
	out := r.Policy.String() + " " + r.Name
	if said := r.DenialNotice(); said != "" {
		return out + ": " + said
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

// ownCluster of a backend, as package hooks makes it: one for all backends of a rule that
// asks for that, where we have the endpoints of all, else one for each.
func ownCluster(s *ir.Snapshot, r *ir.Route, i int, b ir.BackendRef) string {
	rule, kind := &r.Rules[i], r.Key.Kind
	several, together := 0, rule.Exclusive || kind == ir.KindUDPRoute
	for _, of := range rule.Backends {
		if of.Weight > 0 {
			several++
			together = together && of.Kind != ir.BackendOther
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
		return out
	}
	key := b.Target(r.Key.Kind)
	out.Target, out.Cluster = key.ClusterName(), key.ClusterName()
	t := s.Target(key)
	switch {
	case !s.Permitted(r.Key, b):
		out.Problem = fmt.Sprintf("No ReferenceGrant in namespace %s lets the route name it; L4 routes can name only what is in their own namespace", b.Namespace)
	case t == nil:
		out.Problem = "It is not known yet"
	default:
		describeTarget(&out, t)
		out.Problem = cmp.Or(out.Problem, s.Withheld(r, t))
	}
	return out
}

func describeTarget(out *Backend, t *ir.Target) {
	out.Problem, out.Refused = t.Problem, t.Refused
	if h := t.Shape.HealthCheck; h != nil {
		what := "a TCP connection"
		if h.Path != "" {
			what = "GET " + h.Path
		}
		out.Check = fmt.Sprintf("%s each %s, at most %s; well after %d, sick after %d", what, h.Interval, h.Timeout, h.Healthy, h.Unhealthy)
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
		return "degraded, for when no other is left"
	case ir.HealthUnknown:
	}
	return "left to Envoy's own checks"
}

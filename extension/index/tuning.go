// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// A Tuning is what a BackendTrafficPolicy asks for and hooks do not see in clusters: most
// is of endpoint lists, and Envoy Gateway answers it in lists of its own, which hooks
// neither see nor use. The zero value asks for nothing.
type Tuning struct {
	// HealthPort is where Envoy checks endpoints. Zero is where they serve.
	HealthPort uint32

	// PreferLocal has localities stand for nothing but zones, so that Envoy finds its
	// own among them.
	PreferLocal bool

	// Zones are the weights of zones, by their names. One that is not named weighs 1.
	// None leaves weights as backends have them.
	Zones []ZoneWeight

	// HTTP2 is of clusters, and no part of a list's name.
	HTTP2 HTTP2
}

// A ZoneWeight is a zone's part of the traffic.
type ZoneWeight struct {
	Zone   string
	Weight uint32
}

// Parts of a name that tell a Tuning: LIST[+health=PORT][+local][+zone=ZONE:WEIGHT]...
const (
	tuningSeparator = "+"
	tuningHealth    = "health="
	tuningLocal     = "local"
	tuningZone      = "zone="
)

// zoneName is what the zone of a node can be: the value of a label.
var zoneName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// Equal reports whether both ask for the same.
func (t Tuning) Equal(o Tuning) bool {
	return t.HealthPort == o.HealthPort && t.PreferLocal == o.PreferLocal && slices.Equal(t.Zones, o.Zones) && t.HTTP2 == o.HTTP2
}

// Name of an endpoint list that is tuned so. What the list is like is part of its name,
// so that routes which ask for different things of one target have different lists.
func (t Tuning) Name(list string) string {
	parts := []string{list}
	if t.HealthPort != 0 {
		parts = append(parts, tuningHealth+strconv.FormatUint(uint64(t.HealthPort), 10))
	}
	if t.PreferLocal {
		parts = append(parts, tuningLocal)
	}
	for _, z := range t.Zones {
		parts = append(parts, tuningZone+z.Zone+":"+strconv.FormatUint(uint64(z.Weight), 10))
	}
	return strings.Join(parts, tuningSeparator)
}

// ParseTuning is the reverse of Name. False means that it is no such name.
func ParseTuning(name string) (list string, t Tuning, ok bool) {
	list, rest, tuned := strings.Cut(name, tuningSeparator)
	if !tuned {
		return list, Tuning{}, true
	}
	for p := range strings.SplitSeq(rest, tuningSeparator) {
		if port, found := strings.CutPrefix(p, tuningHealth); found {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return "", Tuning{}, false
			}
			t.HealthPort = uint32(n)
			continue
		}
		if zone, found := strings.CutPrefix(p, tuningZone); found {
			zone, weight, _ := strings.Cut(zone, ":")
			n, err := strconv.ParseUint(weight, 10, 32)
			if err != nil {
				return "", Tuning{}, false
			}
			t.Zones = append(t.Zones, ZoneWeight{Zone: zone, Weight: uint32(n)})
			continue
		}
		if p != tuningLocal {
			return "", Tuning{}, false
		}
		t.PreferLocal = true
	}
	return list, t, true
}

// A policySpec is what a BackendTrafficPolicy says of endpoint lists and of HTTP/2. That zones near
// Envoy are preferred stands in the cluster, too, where hooks see it.
type policySpec struct {
	Spec struct {
		MergeType   string `json:"mergeType,omitempty"`
		HealthCheck struct {
			Active struct {
				Overrides struct {
					Port int32 `json:"port,omitempty"`
				} `json:"overrides"`
			} `json:"active"`
		} `json:"healthCheck"`
		LoadBalancer struct {
			ZoneAware struct {
				WeightedZones []struct {
					Zone   string `json:"zone"`
					Weight int64  `json:"weight"`
				} `json:"weightedZones,omitempty"`
			} `json:"zoneAware"`
		} `json:"loadBalancer"`
		HTTP2 http2Spec `json:"http2"`
	} `json:"spec"`
}

// tuning that the policy asks for. Zones that no node can have are left out.
func (p *policySpec) tuning() Tuning {
	t := Tuning{HealthPort: uint32(min(max(p.Spec.HealthCheck.Active.Overrides.Port, 0), math.MaxUint16)), HTTP2: p.Spec.HTTP2.settings()}
	for _, z := range p.Spec.LoadBalancer.ZoneAware.WeightedZones {
		if zoneName.MatchString(z.Zone) {
			t.Zones = append(t.Zones, ZoneWeight{Zone: z.Zone, Weight: uint32(min(max(z.Weight, 0), math.MaxUint32))})
		}
	}
	slices.SortFunc(t.Zones, func(a, b ZoneWeight) int { return cmp.Compare(a.Zone, b.Zone) })
	return t
}

// older policies go before younger ones of one target, as with Envoy Gateway.
func (p *trafficPolicy) older(o *trafficPolicy) bool {
	return cmp.Or(p.created.Compare(o.created), compareNames(p.name, o.name)) < 0
}

// tunings of a route's rules, by their names, as policies ask for them. The empty name
// stands for rules without one. Nil means none.
//
// A policy of the rule goes before one of the route, and that before those of what the
// route attaches to: a listener, a ListenerSet, a Gateway. Policies of what the route
// attaches to are those of the first that has one, for a rule has one cluster.
func (w *world) tunings(r *parsedRoute) map[string]Tuning {
	var near []*trafficPolicy
	for _, p := range w.policies {
		if p.rules(r) != nil {
			near = append(near, p)
		}
	}
	names := map[string]bool{"": true}
	for _, rule := range r.route.Rules {
		names[rule.Name] = true
	}
	var out map[string]Tuning
	above := w.above(r)
	for name := range names {
		t := nearest(near, r, name).over(above)
		if t.Equal(Tuning{}) {
			continue
		}
		if out == nil {
			out = map[string]Tuning{}
		}
		out[name] = t
	}
	return out
}

// over is what the policy asks for together with the one above: it counts alone unless
// it is to be merged. Nil is no policy.
func (p *trafficPolicy) over(above *trafficPolicy) Tuning {
	switch {
	case p == nil && above == nil:
		return Tuning{}
	case p == nil:
		return above.tuning
	case above == nil || !p.merges:
		return p.tuning
	}
	t := p.tuning
	t.HealthPort = cmp.Or(t.HealthPort, above.tuning.HealthPort)
	if t.Zones == nil {
		t.Zones = above.tuning.Zones
	}
	t.HTTP2 = t.HTTP2.over(above.tuning.HTTP2)
	return t
}

// nearest of the policies of a route to one of its rules: the rule's own, or the route's.
// Nil if there is none.
func nearest(of []*trafficPolicy, r *parsedRoute, rule string) *trafficPolicy {
	var best *trafficPolicy
	exact := false
	for _, p := range of {
		rules := p.rules(r)
		own := rule != "" && slices.Contains(rules, rule)
		if !own && !slices.Contains(rules, "") {
			continue
		}
		if best == nil || own && !exact || own == exact && p.older(best) {
			best, exact = p, own
		}
	}
	return best
}

// above is the policy of what a route attaches to. Nil if there is none.
func (w *world) above(r *parsedRoute) *trafficPolicy {
	for _, of := range r.parents {
		var best *trafficPolicy
		nearest := beyond
		for _, p := range w.policies {
			d := w.distance(p, of)
			if d < nearest || d == nearest && d != beyond && p.older(best) {
				best, nearest = p, d
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// wide are the names of the policies of whole Gateways that a route attaches to, sorted.
func (w *world) wide(r *parsedRoute) []types.NamespacedName {
	of := w.gateways(r.parents)
	var out []types.NamespacedName
	for n, p := range w.policies {
		if slices.ContainsFunc(of, func(g types.NamespacedName) bool { return p.places[parent{NamespacedName: g}] }) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, compareNames)
	return out
}

// beyond is farther than all that counts.
const beyond = 3

// distance of a policy from where a route attaches: 0 for a listener there, 1 for the
// Gateway or the ListenerSet, 2 for the ListenerSet's Gateway. A route that names no
// listener attaches to any.
func (w *world) distance(p *trafficPolicy, of parent) int {
	out := beyond
	g, set := w.listenerSets[of.NamespacedName]
	for at := range p.places {
		switch {
		case at.listenerSet == of.listenerSet && at.NamespacedName == of.NamespacedName:
			if at.section == "" {
				out = min(out, 1)
			} else if of.section == "" || of.section == at.section {
				out = 0
			}
		case set && of.listenerSet && at == (parent{NamespacedName: g}):
			out = min(out, 2)
		}
	}
	return out
}

// concerns reports whether a route's clusters or lists may depend on a policy. Nil concerns
// none.
func (w *world) concerns(p *trafficPolicy, r *parsedRoute) bool {
	if p == nil {
		return false
	}
	return p.rules(r) != nil || slices.ContainsFunc(r.parents, func(of parent) bool { return w.distance(p, of) < beyond })
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func nn(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// policy returns a policy that is attached to an HTTPRoute of the Gateway gw, or to the Gateway
// itself.
func policy(name, route string, rules ...*ir.PolicyRule) *ir.RoutePolicy {
	t := ir.Attachment{PolicyTarget: ir.PolicyTarget{NamespacedName: nn("gw")}, Found: true, Gateways: []types.NamespacedName{nn("gw")}}
	if route != "" {
		t.PolicyTarget = ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: nn(route)}
	}
	p := &ir.RoutePolicy{Name: nn(name), Generation: 2, Targets: []ir.Attachment{t}}
	for i, r := range rules {
		r.Policy, r.Index = p.Name, i
		p.Rules = append(p.Rules, r)
	}
	return p
}

// at attaches a policy to a section of its target. The target must be a Gateway or a route at
// the listener http.
func at(section string, p *ir.RoutePolicy) *ir.RoutePolicy {
	p.Targets[0].Section = section
	if p.Targets[0].Route != "" {
		p.Targets[0].Listeners = []ir.PolicyTarget{{NamespacedName: nn("gw"), Section: "http"}}
	}
	return p
}

func denies(name string, m ...ir.PolicyMatch) *ir.PolicyRule {
	return &ir.PolicyRule{Name: name, Deny: true, Matches: m}
}

func redirects(name string, m ...ir.PolicyMatch) *ir.PolicyRule {
	return &ir.PolicyRule{Name: name, Redirect: &ir.PolicyRedirect{Path: "/"}, Matches: m}
}

func first(r *ir.PolicyRule) *ir.PolicyRule {
	r.Priority = 1
	return r
}

func path(kind, p string) ir.PolicyMatch {
	return ir.PolicyMatch{Match: ir.Match{PathType: kind, Path: p}}
}

func under(p string) ir.PolicyMatch { return path("PathPrefix", p) }

// A summary is the relevant part of a policy's state.
type summary struct {
	Accepted  map[string]gwapiv1.PolicyConditionReason
	Active    map[string]bool
	Conflicts []gatewayv1alpha1.RoutePolicyConflict
}

func TestStates(t *testing.T) {
	const gw = "Gateway/default/gw/"
	accepted := map[string]gwapiv1.PolicyConditionReason{gw: gwapiv1.PolicyReasonAccepted}
	conflicted := map[string]gwapiv1.PolicyConditionReason{gw: gwapiv1.PolicyReasonConflicted}
	missing := policy("a", "web", denies("x"))
	missing.Targets[0].Found, missing.Targets[0].Gateways = false, nil
	alone := policy("a", "web", denies("x"))
	alone.Targets[0].Gateways = nil
	late := policy("a", "web", redirects("x", under("/1")))
	late.Rules[0].Created = time.Unix(9, 0)
	between := func(kind gatewayv1alpha1.RoutePolicyConflictType) map[string][]gatewayv1alpha1.RoutePolicyConflict {
		return map[string][]gatewayv1alpha1.RoutePolicyConflict{
			"a": {{Type: kind, Rule: "x", TakesPrecedence: true, ConflictingPolicy: "default/b", ConflictingRule: "y"}},
			"b": {{Type: kind, Rule: "y", ConflictingPolicy: "default/a", ConflictingRule: "x"}},
		}
	}
	nearer := map[string]summary{
		"a": {Accepted: accepted, Active: map[string]bool{"x": true}, Conflicts: between(gatewayv1alpha1.ConflictingAction)["a"]},
		"b": {Accepted: accepted, Active: map[string]bool{"y": true}, Conflicts: between(gatewayv1alpha1.ConflictingAction)["b"]},
	}
	everywhere := policy("a", "web", redirects("x", under("/1")))
	everywhere.Targets[0].Listeners = []ir.PolicyTarget{{NamespacedName: nn("gw")}}
	cases := map[string]struct {
		reason   string
		policies []*ir.RoutePolicy
		want     map[string]summary
	}{
		"Fine": {
			reason:   "A policy with an active rule is accepted for its Gateway.",
			policies: []*ir.RoutePolicy{policy("a", "web", denies("x", under("/1")), redirects("y", under("/2")))},
			want:     map[string]summary{"a": {Accepted: accepted, Active: map[string]bool{"x": true, "y": true}}},
		},
		"TargetNotFound": {
			reason:   "A missing target is an ancestor with TargetNotFound.",
			policies: []*ir.RoutePolicy{missing},
			want:     map[string]summary{"a": {Accepted: map[string]gwapiv1.PolicyConditionReason{"HTTPRoute/default/web/": gwapiv1.PolicyReasonTargetNotFound}, Active: map[string]bool{"x": false}}},
		},
		"NoGateway": {
			reason:   "A route without a Gateway is an ancestor with TargetNotFound.",
			policies: []*ir.RoutePolicy{alone},
			want:     map[string]summary{"a": {Accepted: map[string]gwapiv1.PolicyConditionReason{"HTTPRoute/default/web/": gwapiv1.PolicyReasonTargetNotFound}, Active: map[string]bool{"x": true}}},
		},
		"Invalid": {
			reason:   "A policy without a usable rule is invalid.",
			policies: []*ir.RoutePolicy{policy("a", "web", &ir.PolicyRule{Name: "x", Problem: "broken"})},
			want:     map[string]summary{"a": {Accepted: map[string]gwapiv1.PolicyConditionReason{gw: gwapiv1.PolicyReasonInvalid}, Active: map[string]bool{"x": false}}},
		},
		"PartlyInvalid": {
			reason:   "An invalid rule does not affect other rules.",
			policies: []*ir.RoutePolicy{policy("a", "web", &ir.PolicyRule{Name: "x", Problem: "broken"}, denies("y"))},
			want:     map[string]summary{"a": {Accepted: accepted, Active: map[string]bool{"x": false, "y": true}}},
		},
		"OverlappingRule": {
			reason:   "A rule with the action of another rule that covers it is an OverlappingRule.",
			policies: []*ir.RoutePolicy{policy("a", "web", denies("x", under("/1"))), policy("b", "web", denies("y", path("Exact", "/1/2")))},
			want: map[string]summary{
				"a": {Accepted: accepted, Active: map[string]bool{"x": true}, Conflicts: between(gatewayv1alpha1.OverlappingRule)["a"]},
				"b": {Accepted: conflicted, Active: map[string]bool{"y": false}, Conflicts: between(gatewayv1alpha1.OverlappingRule)["b"]},
			},
		},
		"ConflictingAction": {
			reason:   "The rule with the higher priority takes precedence, and the conflict is reported.",
			policies: []*ir.RoutePolicy{policy("a", "web", first(redirects("x", under("/")))), policy("b", "web", denies("y", path("RegularExpression", "/1.*")))},
			want: map[string]summary{
				"a": {Accepted: accepted, Active: map[string]bool{"x": true}, Conflicts: between(gatewayv1alpha1.ConflictingAction)["a"]},
				"b": {Accepted: conflicted, Active: map[string]bool{"y": false}, Conflicts: between(gatewayv1alpha1.ConflictingAction)["b"]},
			},
		},
		"PriorityConflict": {
			reason:   "Between rules of the same priority the older one takes precedence, and the conflict is reported.",
			policies: []*ir.RoutePolicy{late, policy("b", "web", denies("y", under("/1/")))},
			want: map[string]summary{
				"a": {Accepted: conflicted, Active: map[string]bool{"x": false}, Conflicts: []gatewayv1alpha1.RoutePolicyConflict{{Type: gatewayv1alpha1.PriorityConflict, Rule: "x", ConflictingPolicy: "default/b", ConflictingRule: "y"}}},
				"b": {Accepted: accepted, Active: map[string]bool{"y": true}, Conflicts: []gatewayv1alpha1.RoutePolicyConflict{{Type: gatewayv1alpha1.PriorityConflict, Rule: "y", TakesPrecedence: true, ConflictingPolicy: "default/a", ConflictingRule: "x"}}},
			},
		},
		"Nearer": {
			reason:   "A rule of a Gateway that a route's rule overrides is reported, and acts on other routes.",
			policies: []*ir.RoutePolicy{policy("a", "web", redirects("x", under("/1"))), policy("b", "", denies("y", under("/1/2")))},
			want:     nearer,
		},
		"NearerListener": {
			reason:   "A rule of a Gateway that a listener's rule overrides is reported.",
			policies: []*ir.RoutePolicy{at("http", policy("a", "", redirects("x", under("/1")))), policy("b", "", denies("y", under("/1/2")))},
			want:     nearer,
		},
		"NearerThanListener": {
			reason:   "A rule of a listener that a route's rule overrides is reported.",
			policies: []*ir.RoutePolicy{at("", policy("a", "web", redirects("x", under("/1")))), at("http", policy("b", "", denies("y", under("/1/2"))))},
			want:     nearer,
		},
		"AllListeners": {
			reason:   "A route without a sectionName is attached to all listeners of its Gateway.",
			policies: []*ir.RoutePolicy{everywhere, at("https", policy("b", "", denies("y", under("/1/2"))))},
			want:     nearer,
		},
		"OtherListener": {
			reason:   "Rules of a listener to which the route is not attached do not conflict with the route's.",
			policies: []*ir.RoutePolicy{at("", policy("a", "web", redirects("x"))), at("https", policy("b", "", denies("y")))},
			want:     map[string]summary{"a": {Accepted: accepted, Active: map[string]bool{"x": true}}, "b": {Accepted: accepted, Active: map[string]bool{"y": true}}},
		},
		"NearerRule": {
			reason:   "A rule of a route that a policy of one of its rules overrides is reported.",
			policies: []*ir.RoutePolicy{at("first", policy("a", "web", redirects("x", under("/1")))), policy("b", "web", denies("y", under("/1/2")))},
			want:     nearer,
		},
		"NearerRuleThanListener": {
			reason:   "A rule of a listener that a policy of a route's rule overrides is reported.",
			policies: []*ir.RoutePolicy{at("first", policy("a", "web", redirects("x", under("/1")))), at("http", policy("b", "", denies("y", under("/1/2"))))},
			want:     nearer,
		},
		"NearerRuleThanGateway": {
			reason:   "A rule of a Gateway that a policy of a route's rule overrides is reported.",
			policies: []*ir.RoutePolicy{at("first", policy("a", "web", redirects("x", under("/1")))), policy("b", "", denies("y", under("/1/2")))},
			want:     nearer,
		},
		"ConflictingRule": {
			reason:   "Rules of two sections do not conflict.",
			policies: []*ir.RoutePolicy{at("first", policy("a", "web", redirects("x"))), at("second", policy("b", "web", denies("y")))},
			want:     map[string]summary{"a": {Accepted: accepted, Active: map[string]bool{"x": true}}, "b": {Accepted: accepted, Active: map[string]bool{"y": true}}},
		},
		"OtherRoute": {
			reason:   "Rules of two routes do not conflict.",
			policies: []*ir.RoutePolicy{policy("a", "web", denies("x")), policy("b", "app", redirects("y"))},
			want:     map[string]summary{"a": {Accepted: accepted, Active: map[string]bool{"x": true}}, "b": {Accepted: accepted, Active: map[string]bool{"y": true}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]summary{}
			for n, st := range states(ir.NewSnapshot(ir.Contents{Policies: tc.policies})) {
				s := summary{Accepted: map[string]gwapiv1.PolicyConditionReason{}, Active: map[string]bool{}, Conflicts: st.conflicts}
				for _, a := range st.ancestors {
					s.Accepted[refString(a.ref)] = a.reason
				}
				for _, r := range st.rules {
					s.Active[r.Name] = r.Active
					if r.Active != (r.Message == "") {
						t.Errorf("\n%s\nrule %s: active %t, message %q", tc.reason, r.Name, r.Active, r.Message)
					}
				}
				got[n.Name] = s
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nstates(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNamesAlone checks that the status says what to set where names that users choose would
// admit other clients.
func TestNamesAlone(t *testing.T) {
	cases := map[string]struct {
		reason string
		rule   *ir.PolicyRule
		want   string
	}{
		"LetsIn": {
			reason: "The message says that the rule admits no client.",
			rule:   redirects("x", under("/1"), ir.PolicyMatch{NamesOnly: true}),
			want:   "matches[1].tailnetDevice: users choose the names of their devices, so hostnames alone let nobody in: set tags or users beside them. Until then such devices are answered 403",
		},
		"Denies": {
			reason: "The message says that the rule may match other clients.",
			rule:   denies("x", ir.PolicyMatch{NamesOnly: true}),
			want:   "matches[0].tailnetDevice: users choose the names of their devices, and who chooses another is not denied: set tags or users beside hostnames",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := policy("a", "web", tc.rule)
			p.Notices = map[string]string{"x": "Devices are not known yet"}
			got := stateOf(&ir.Snapshot{}, p, nil)
			if diff := cmp.Diff([]gatewayv1alpha1.RoutePolicyRuleStatus{{Name: "x", Active: true, Message: tc.want}}, got.rules); diff != "" {
				t.Errorf("%s\nrules: -want, +got:\n%s", tc.reason, diff)
			}
			if a := got.ancestors; len(a) != 1 || a[0].reason != gwapiv1.PolicyReasonInvalid || a[0].message != "Rule x: "+tc.want {
				t.Errorf("%s\nancestors: %+v", tc.reason, a)
			}
		})
	}
}

// TestFailsOpen checks that a policy that Envoy Gateway may drop is not accepted if it denies
// requests.
func TestFailsOpen(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		rule   *ir.PolicyRule
		want   gwapiv1.PolicyConditionReason
	}{
		"Denies":    {reason: "Dropping the policy would let denied clients in.", rule: denies("x"), want: gwapiv1.PolicyReasonInvalid},
		"Redirects": {reason: "A policy without such a rule admits nobody when it is dropped.", rule: redirects("x"), want: gwapiv1.PolicyReasonAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy("a", "web", tc.rule)
			p.FailOpen = true
			if a := stateOf(&ir.Snapshot{}, p, nil).ancestors; len(a) != 1 || a[0].reason != tc.want {
				t.Errorf("%s\nancestors: %+v", tc.reason, a)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	clients := func(ps ...string) ir.PolicyMatch {
		m := ir.PolicyMatch{Clients: []netip.Prefix{}}
		for _, p := range ps {
			m.Clients = append(m.Clients, netip.MustParsePrefix(p))
		}
		return m
	}
	header := func(m ir.PolicyMatch, h ...string) ir.PolicyMatch {
		m.Headers = h
		return m
	}
	cases := map[string]struct {
		reason string
		a, b   []ir.PolicyMatch
		want   bool
	}{
		"All":          {reason: "A rule without matches covers a rule with matches.", b: []ir.PolicyMatch{under("/1")}, want: true},
		"Some":         {reason: "A rule with matches does not cover a rule without.", a: []ir.PolicyMatch{under("/1")}},
		"Root":         {reason: "The prefix / covers all requests.", a: []ir.PolicyMatch{under("/")}, want: true},
		"Segment":      {reason: "A prefix ends at a path segment.", a: []ir.PolicyMatch{under("/1")}, b: []ir.PolicyMatch{under("/12")}},
		"ExactPrefix":  {reason: "An exact path does not cover a prefix.", a: []ir.PolicyMatch{path("Exact", "/1")}, b: []ir.PolicyMatch{under("/1")}},
		"MoreHeaders":  {reason: "Fewer headers cover more headers.", a: []ir.PolicyMatch{header(under("/"), "a=1")}, b: []ir.PolicyMatch{header(under("/"), "a=1", "b=2")}, want: true},
		"OtherHeaders": {reason: "A match with a header does not cover one without.", a: []ir.PolicyMatch{header(under("/"), "a=1")}, b: []ir.PolicyMatch{under("/")}},
		"Range":        {reason: "A range covers an address in it.", a: []ir.PolicyMatch{clients("100.64.0.0/24")}, b: []ir.PolicyMatch{clients("100.64.0.7/32")}, want: true},
		"Wider":        {reason: "An address does not cover a range.", a: []ir.PolicyMatch{clients("100.64.0.7/32")}, b: []ir.PolicyMatch{clients("100.64.0.0/24")}},
		"AnyoneElse":   {reason: "An address does not cover all clients.", a: []ir.PolicyMatch{clients("100.64.0.7/32")}, b: []ir.PolicyMatch{under("/")}},
		"NoClients":    {reason: "A match without clients is no conflict.", a: []ir.PolicyMatch{under("/")}, b: []ir.PolicyMatch{clients()}},
		"EachOfSome":   {reason: "A rule covers another one only if it covers each match.", a: []ir.PolicyMatch{under("/1")}, b: []ir.PolicyMatch{under("/1/2"), under("/2")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := covers(denies("a", tc.a...), denies("b", tc.b...)); got != tc.want {
				t.Errorf("%s\ncovers(...): %t", tc.reason, got)
			}
		})
	}
}

// TestStatus checks that a status keeps the ancestors of other controllers, and the time of
// conditions that have not changed.
func TestStatus(t *testing.T) {
	st := states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{policy("a", "web", denies("x"))}}))[nn("a")]
	at := metav1.NewTime(time.Unix(1, 0))
	previous := st.status(gatewayv1alpha1.TailscaleRoutePolicyStatus{})
	previous.Ancestors[0].Conditions[0].LastTransitionTime = at
	previous.Ancestors = append(previous.Ancestors, gwapiv1.PolicyAncestorStatus{ControllerName: "other.example.com/controller"})
	if diff := cmp.Diff(previous, st.status(previous)); diff != "" {
		t.Errorf("status without a change: -want, +got:\n%s", diff)
	}
	st.ancestors[0].reason = gwapiv1.PolicyReasonInvalid
	updated := st.status(previous)
	if c := updated.Ancestors[0].Conditions[0]; c.Status != metav1.ConditionFalse || c.LastTransitionTime.Equal(&at) {
		t.Errorf("Accepted: want False with a new transition time, got %v", c)
	}
	if updated.Ancestors[1].ControllerName != "other.example.com/controller" {
		t.Errorf("want the ancestor of the other controller, got %v", updated.Ancestors)
	}
}

// TestFullStatus checks which ancestors a status without enough space omits, and that those of
// other controllers stay.
func TestFullStatus(t *testing.T) {
	// Fifteen Gateways where the policy acts, and a missing target.
	crowded := policy("a", "web", denies("x"))
	crowded.Targets[0].Gateways = nil
	for i := range 15 {
		crowded.Targets[0].Gateways = append(crowded.Targets[0].Gateways, nn(string(rune('a'+i))))
	}
	crowded.Targets = append(crowded.Targets, ir.Attachment{PolicyTarget: ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: nn("zone")}})
	cases := map[string]struct {
		reason   string
		others   int
		included []string
		message  string
		rule     string
	}{
		"Room":   {reason: "With enough space all ancestors are included.", included: strings.Split("a b c d e f g h i j k l m n o zone", " "), message: "The policy has been accepted"},
		"Little": {reason: "Ancestors with problems come first.", others: 13, included: []string{"a", "b", "zone"}, message: "The policy has been accepted; 13 more ancestors are omitted, of which 13 are accepted"},
		"One":    {reason: "The last entry is an ancestor with a problem.", others: 15, included: []string{"zone"}, message: "It does not exist; create it, or correct targetRefs; 15 more ancestors are omitted, of which 15 are accepted"},
		"None":   {reason: "Without any space the rules have a message.", others: 16, rule: "status.ancestors has no space for this policy: other controllers use all of it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			previous := gatewayv1alpha1.TailscaleRoutePolicyStatus{}
			for i := range tc.others {
				previous.Ancestors = append(previous.Ancestors, gwapiv1.PolicyAncestorStatus{
					AncestorRef: gwapiv1.ParentReference{Name: gwapiv1.ObjectName(string(rune('a' + i)))}, ControllerName: "other.example.com/controller",
				})
			}
			got := states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{crowded}}))[nn("a")].status(previous)
			n := len(got.Ancestors) - tc.others
			var included []string
			for _, a := range got.Ancestors[:n] {
				included = append(included, string(a.AncestorRef.Name))
			}
			if diff := cmp.Diff(tc.included, included); diff != "" {
				t.Fatalf("\n%s\nstatus(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(previous.Ancestors, got.Ancestors[n:], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nothers: -want, +got:\n%s", tc.reason, diff)
			}
			if n > 0 && got.Ancestors[0].Conditions[0].Message != tc.message {
				t.Errorf("\n%s\nmessage %q, want %q", tc.reason, got.Ancestors[0].Conditions[0].Message, tc.message)
			}
			if got.Rules[0].Message != tc.rule {
				t.Errorf("\n%s\nmessage of the rule %q, want %q", tc.reason, got.Rules[0].Message, tc.rule)
			}
			if diff := cmp.Diff(got, states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{crowded}}))[nn("a")].status(got)); diff != "" {
				t.Errorf("\n%s\nsecond status(...): -first, +second:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWidened checks that a Deny rule that denies more than its matches is active, and that the
// policy reports it.
func TestWidened(t *testing.T) {
	p := policy("a", "web", &ir.PolicyRule{Name: "x", Deny: true, Widened: "matches[0]: broken", Matches: []ir.PolicyMatch{{}}})
	for _, st := range states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{p}})) {
		if got := st.rules[0]; !got.Active || !strings.Contains(got.Message, "matches[0]: broken") {
			t.Errorf("rule: want active with a message about the invalid match, got %+v", got)
		}
		if got := st.ancestors[0].reason; got != gwapiv1.PolicyReasonInvalid {
			t.Errorf("Accepted: want %s, got %s", gwapiv1.PolicyReasonInvalid, got)
		}
	}
}

// TestRefused checks the status of a policy whose routes policies insert too many routes for.
func TestRefused(t *testing.T) {
	key := func(ns string) ir.RouteKey {
		return ir.RouteKey{Kind: ir.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: ns, Name: "web"}}
	}
	cases := map[string]struct {
		reason  string
		refused map[ir.RouteKey]string
		want    ancestor
	}{
		"Own": {
			reason:  "A policy with a refused route of its namespace should be invalid.",
			refused: map[ir.RouteKey]string{key("default"): "too many"},
			want:    ancestor{reason: gwapiv1.PolicyReasonInvalid, message: "Requests of default/web are answered 403: too many; use fewer matches, hostnames, rules or routes"},
		},
		"Others": {
			reason:  "A Gateway's policy should stay accepted if routes of others are refused.",
			refused: map[ir.RouteKey]string{key("b"): "too many", key("a"): "too large", key("c"): "x", key("d"): "x"},
			want:    ancestor{reason: gwapiv1.PolicyReasonAccepted, message: "The policy has been accepted. Requests of a/web, b/web, c/web and 1 more are answered 403: too large; use fewer matches, hostnames, rules or routes"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := policy("p", "", denies("x", under("/1")))
			p.Refused = tc.refused
			got := states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{p}}))[p.Name].ancestors[0]
			got.ref = gwapiv1.ParentReference{}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(ancestor{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

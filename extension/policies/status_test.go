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

// policy attached to an HTTPRoute of the Gateway gw, or to the Gateway itself.
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

// at a section of its target, which for a route is at the listener http of its Gateway.
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

// said of a policy, in short.
type said struct {
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
			"a": {{Type: kind, Rule: "x", Prevails: true, OtherPolicy: "default/b", OtherRule: "y"}},
			"b": {{Type: kind, Rule: "y", OtherPolicy: "default/a", OtherRule: "x"}},
		}
	}
	nearer := map[string]said{
		"a": {Accepted: accepted, Active: map[string]bool{"x": true}, Conflicts: between(gatewayv1alpha1.ConflictingAction)["a"]},
		"b": {Accepted: accepted, Active: map[string]bool{"y": true}, Conflicts: between(gatewayv1alpha1.ConflictingAction)["b"]},
	}
	everywhere := policy("a", "web", redirects("x", under("/1")))
	everywhere.Targets[0].Listeners = []ir.PolicyTarget{{NamespacedName: nn("gw")}}
	cases := map[string]struct {
		reason string
		in     []*ir.RoutePolicy
		want   map[string]said
	}{
		"Fine": {
			reason: "A policy that acts should be accepted on its Gateway.",
			in:     []*ir.RoutePolicy{policy("a", "web", denies("x", under("/1")), redirects("y", under("/2")))},
			want:   map[string]said{"a": {Accepted: accepted, Active: map[string]bool{"x": true, "y": true}}},
		},
		"TargetNotFound": {
			reason: "A target that is not there should be an ancestor that says so.",
			in:     []*ir.RoutePolicy{missing},
			want:   map[string]said{"a": {Accepted: map[string]gwapiv1.PolicyConditionReason{"HTTPRoute/default/web/": gwapiv1.PolicyReasonTargetNotFound}, Active: map[string]bool{"x": false}}},
		},
		"NoGateway": {
			reason: "A route without a Gateway should be told.",
			in:     []*ir.RoutePolicy{alone},
			want:   map[string]said{"a": {Accepted: map[string]gwapiv1.PolicyConditionReason{"HTTPRoute/default/web/": gwapiv1.PolicyReasonTargetNotFound}, Active: map[string]bool{"x": true}}},
		},
		"Invalid": {
			reason: "A policy of which no rule can be used should be invalid.",
			in:     []*ir.RoutePolicy{policy("a", "web", &ir.PolicyRule{Name: "x", Problem: "broken"})},
			want:   map[string]said{"a": {Accepted: map[string]gwapiv1.PolicyConditionReason{gw: gwapiv1.PolicyReasonInvalid}, Active: map[string]bool{"x": false}}},
		},
		"PartlyInvalid": {
			reason: "A broken rule should take no other with it.",
			in:     []*ir.RoutePolicy{policy("a", "web", &ir.PolicyRule{Name: "x", Problem: "broken"}, denies("y"))},
			want:   map[string]said{"a": {Accepted: accepted, Active: map[string]bool{"x": false, "y": true}}},
		},
		"OverlappingRule": {
			reason: "A rule that does the same on part of what another one matches should be told.",
			in:     []*ir.RoutePolicy{policy("a", "web", denies("x", under("/1"))), policy("b", "web", denies("y", path("Exact", "/1/2")))},
			want: map[string]said{
				"a": {Accepted: accepted, Active: map[string]bool{"x": true}, Conflicts: between(gatewayv1alpha1.OverlappingRule)["a"]},
				"b": {Accepted: conflicted, Active: map[string]bool{"y": false}, Conflicts: between(gatewayv1alpha1.OverlappingRule)["b"]},
			},
		},
		"ConflictingAction": {
			reason: "A higher priority should decide, and be told.",
			in:     []*ir.RoutePolicy{policy("a", "web", first(redirects("x", under("/")))), policy("b", "web", denies("y", path("RegularExpression", "/1.*")))},
			want: map[string]said{
				"a": {Accepted: accepted, Active: map[string]bool{"x": true}, Conflicts: between(gatewayv1alpha1.ConflictingAction)["a"]},
				"b": {Accepted: conflicted, Active: map[string]bool{"y": false}, Conflicts: between(gatewayv1alpha1.ConflictingAction)["b"]},
			},
		},
		"PriorityConflict": {
			reason: "Between rules of one priority age should decide, and be told.",
			in:     []*ir.RoutePolicy{late, policy("b", "web", denies("y", under("/1/")))},
			want: map[string]said{
				"a": {Accepted: conflicted, Active: map[string]bool{"x": false}, Conflicts: []gatewayv1alpha1.RoutePolicyConflict{{Type: gatewayv1alpha1.PriorityConflict, Rule: "x", OtherPolicy: "default/b", OtherRule: "y"}}},
				"b": {Accepted: accepted, Active: map[string]bool{"y": true}, Conflicts: []gatewayv1alpha1.RoutePolicyConflict{{Type: gatewayv1alpha1.PriorityConflict, Rule: "y", Prevails: true, OtherPolicy: "default/a", OtherRule: "x"}}},
			},
		},
		"Nearer": {
			reason: "A Gateway's rule that a route's overrides should be told, and acts on other routes.",
			in:     []*ir.RoutePolicy{policy("a", "web", redirects("x", under("/1"))), policy("b", "", denies("y", under("/1/2")))},
			want:   nearer,
		},
		"NearerListener": {
			reason: "So should one of a Gateway that a listener's overrides.",
			in:     []*ir.RoutePolicy{at("http", policy("a", "", redirects("x", under("/1")))), policy("b", "", denies("y", under("/1/2")))},
			want:   nearer,
		},
		"NearerThanListener": {
			reason: "So should one of a listener that a route's overrides.",
			in:     []*ir.RoutePolicy{at("", policy("a", "web", redirects("x", under("/1")))), at("http", policy("b", "", denies("y", under("/1/2"))))},
			want:   nearer,
		},
		"AllListeners": {
			reason: "A route that names no listener is at all of its Gateway's.",
			in:     []*ir.RoutePolicy{everywhere, at("https", policy("b", "", denies("y", under("/1/2"))))},
			want:   nearer,
		},
		"OtherListener": {
			reason: "Rules of a listener that the route is not at do not meet its own.",
			in:     []*ir.RoutePolicy{at("", policy("a", "web", redirects("x"))), at("https", policy("b", "", denies("y")))},
			want:   map[string]said{"a": {Accepted: accepted, Active: map[string]bool{"x": true}}, "b": {Accepted: accepted, Active: map[string]bool{"y": true}}},
		},
		"NearerRule": {
			reason: "So should one of a route that a rule's of it overrides.",
			in:     []*ir.RoutePolicy{at("first", policy("a", "web", redirects("x", under("/1")))), policy("b", "web", denies("y", under("/1/2")))},
			want:   nearer,
		},
		"NearerRuleThanListener": {
			reason: "And one of a listener that a rule's of a route overrides.",
			in:     []*ir.RoutePolicy{at("first", policy("a", "web", redirects("x", under("/1")))), at("http", policy("b", "", denies("y", under("/1/2"))))},
			want:   nearer,
		},
		"NearerRuleThanGateway": {
			reason: "And one of the Gateway.",
			in:     []*ir.RoutePolicy{at("first", policy("a", "web", redirects("x", under("/1")))), policy("b", "", denies("y", under("/1/2")))},
			want:   nearer,
		},
		"OtherRule": {
			reason: "Rules of two sections do not meet.",
			in:     []*ir.RoutePolicy{at("first", policy("a", "web", redirects("x"))), at("second", policy("b", "web", denies("y")))},
			want:   map[string]said{"a": {Accepted: accepted, Active: map[string]bool{"x": true}}, "b": {Accepted: accepted, Active: map[string]bool{"y": true}}},
		},
		"OtherRoute": {
			reason: "Rules of two routes do not meet.",
			in:     []*ir.RoutePolicy{policy("a", "web", denies("x")), policy("b", "app", redirects("y"))},
			want:   map[string]said{"a": {Accepted: accepted, Active: map[string]bool{"x": true}}, "b": {Accepted: accepted, Active: map[string]bool{"y": true}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]said{}
			for n, st := range states(ir.NewSnapshot(ir.Contents{Policies: tc.in})) {
				s := said{Accepted: map[string]gwapiv1.PolicyConditionReason{}, Active: map[string]bool{}, Conflicts: st.conflicts}
				for _, a := range st.ancestors {
					s.Accepted[refString(a.ref)] = a.reason
				}
				for _, r := range st.rules {
					s.Active[r.Name] = r.Active
					if r.Active != (r.Message == "") {
						t.Errorf("\n%s\nrule %s: active is %t, and it says %q", tc.reason, r.Name, r.Active, r.Message)
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

// TestNamesAlone has the status say what to set where names that users choose would let
// somebody in.
func TestNamesAlone(t *testing.T) {
	cases := map[string]struct {
		reason string
		rule   *ir.PolicyRule
		want   string
	}{
		"LetsIn": {
			reason: "That the rule lets nobody in should be told.",
			rule:   redirects("x", under("/1"), ir.PolicyMatch{NamesOnly: true}),
			want:   "matches[1].tailnetDevice: users choose the names of their devices, so hostnames alone let nobody in: set tags or users beside them. Until then such devices are answered 403",
		},
		"Denies": {
			reason: "That others may be meant should be told.",
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

func TestCovers(t *testing.T) {
	from := func(ps ...string) ir.PolicyMatch {
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
		"All":          {reason: "All is more than some.", b: []ir.PolicyMatch{under("/1")}, want: true},
		"Some":         {reason: "Some is not all.", a: []ir.PolicyMatch{under("/1")}},
		"Root":         {reason: "Under the root is all.", a: []ir.PolicyMatch{under("/")}, want: true},
		"Segment":      {reason: "A prefix ends with a segment.", a: []ir.PolicyMatch{under("/1")}, b: []ir.PolicyMatch{under("/12")}},
		"ExactPrefix":  {reason: "One path is not all under it.", a: []ir.PolicyMatch{path("Exact", "/1")}, b: []ir.PolicyMatch{under("/1")}},
		"MoreHeaders":  {reason: "More headers are fewer requests.", a: []ir.PolicyMatch{header(under("/"), "a=1")}, b: []ir.PolicyMatch{header(under("/"), "a=1", "b=2")}, want: true},
		"OtherHeaders": {reason: "Other headers are other requests.", a: []ir.PolicyMatch{header(under("/"), "a=1")}, b: []ir.PolicyMatch{under("/")}},
		"Range":        {reason: "A device of a range is in it.", a: []ir.PolicyMatch{from("100.64.0.0/24")}, b: []ir.PolicyMatch{from("100.64.0.7/32")}, want: true},
		"Wider":        {reason: "A range is more than a device.", a: []ir.PolicyMatch{from("100.64.0.7/32")}, b: []ir.PolicyMatch{from("100.64.0.0/24")}},
		"AnyoneElse":   {reason: "Devices are not everybody.", a: []ir.PolicyMatch{from("100.64.0.7/32")}, b: []ir.PolicyMatch{under("/")}},
		"Nobody":       {reason: "What matches nobody now is no conflict.", a: []ir.PolicyMatch{under("/")}, b: []ir.PolicyMatch{from()}},
		"EachOfSome":   {reason: "Each match must be covered.", a: []ir.PolicyMatch{under("/1")}, b: []ir.PolicyMatch{under("/1/2"), under("/2")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := covers(denies("a", tc.a...), denies("b", tc.b...)); got != tc.want {
				t.Errorf("%s\ncovers(...): %t", tc.reason, got)
			}
		})
	}
}

// TestStatus keeps what others say, and the time of what does not change.
func TestStatus(t *testing.T) {
	st := states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{policy("a", "web", denies("x"))}}))[nn("a")]
	at := metav1.NewTime(time.Unix(1, 0))
	was := st.status(gatewayv1alpha1.TailscaleRoutePolicyStatus{})
	was.Ancestors[0].Conditions[0].LastTransitionTime = at
	was.Ancestors = append(was.Ancestors, gwapiv1.PolicyAncestorStatus{ControllerName: "other.example.com/controller"})
	if diff := cmp.Diff(was, st.status(was)); diff != "" {
		t.Errorf("what says the same already: -want, +got:\n%s", diff)
	}
	st.ancestors[0].reason = gwapiv1.PolicyReasonInvalid
	now := st.status(was)
	if c := now.Ancestors[0].Conditions[0]; c.Status != metav1.ConditionFalse || c.LastTransitionTime.Equal(&at) {
		t.Errorf("what changes should be false from now on, got %v", c)
	}
	if now.Ancestors[1].ControllerName != "other.example.com/controller" {
		t.Errorf("what another controller says should stay, got %v", now.Ancestors)
	}
}

// TestFullStatus shows what is left out of a status without room for all, and that others'
// entries never are.
func TestFullStatus(t *testing.T) {
	// Fifteen Gateways where the policy acts, and a target that is not there.
	crowded := policy("a", "web", denies("x"))
	crowded.Targets[0].Gateways = nil
	for i := range 15 {
		crowded.Targets[0].Gateways = append(crowded.Targets[0].Gateways, nn(string(rune('a'+i))))
	}
	crowded.Targets = append(crowded.Targets, ir.Attachment{PolicyTarget: ir.PolicyTarget{Route: ir.KindHTTPRoute, NamespacedName: nn("zone")}})
	cases := map[string]struct {
		reason  string
		others  int
		shown   []string
		message string
		rule    string
	}{
		"Room":   {reason: "All are told of where there is room.", shown: strings.Split("a b c d e f g h i j k l m n o zone", " "), message: "The policy has been accepted"},
		"Little": {reason: "What a person must mend goes first.", others: 13, shown: []string{"a", "b", "zone"}, message: "The policy has been accepted; 13 more have no room here, of which 13 are accepted"},
		"One":    {reason: "The last place is for that.", others: 15, shown: []string{"zone"}, message: "It does not exist; make it, or correct targetRefs; 15 more have no room here, of which 15 are accepted"},
		"None":   {reason: "Without any room the rules tell.", others: 16, rule: "Other controllers leave no room in status.ancestors to tell of the policy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was := gatewayv1alpha1.TailscaleRoutePolicyStatus{}
			for i := range tc.others {
				was.Ancestors = append(was.Ancestors, gwapiv1.PolicyAncestorStatus{
					AncestorRef: gwapiv1.ParentReference{Name: gwapiv1.ObjectName(string(rune('a' + i)))}, ControllerName: "other.example.com/controller",
				})
			}
			got := states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{crowded}}))[nn("a")].status(was)
			n := len(got.Ancestors) - tc.others
			var shown []string
			for _, a := range got.Ancestors[:n] {
				shown = append(shown, string(a.AncestorRef.Name))
			}
			if diff := cmp.Diff(tc.shown, shown); diff != "" {
				t.Fatalf("\n%s\nstatus(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(was.Ancestors, got.Ancestors[n:], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nothers: -want, +got:\n%s", tc.reason, diff)
			}
			if n > 0 && got.Ancestors[0].Conditions[0].Message != tc.message {
				t.Errorf("\n%s\nit says %q, want %q", tc.reason, got.Ancestors[0].Conditions[0].Message, tc.message)
			}
			if got.Rules[0].Message != tc.rule {
				t.Errorf("\n%s\nthe rule says %q, want %q", tc.reason, got.Rules[0].Message, tc.rule)
			}
			if diff := cmp.Diff(got, states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{crowded}}))[nn("a")].status(got)); diff != "" {
				t.Errorf("\n%s\nit is not stable: -first, +second:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWidened has a Deny that denies more than it says act, and its policy say so.
func TestWidened(t *testing.T) {
	p := policy("a", "web", &ir.PolicyRule{Name: "x", Deny: true, Widened: "matches[0]: broken", Matches: []ir.PolicyMatch{{}}})
	for _, st := range states(ir.NewSnapshot(ir.Contents{Policies: []*ir.RoutePolicy{p}})) {
		if got := st.rules[0]; !got.Active || !strings.Contains(got.Message, "matches[0]: broken") {
			t.Errorf("rule: want one that acts and says why it denies more, got %+v", got)
		}
		if got := st.ancestors[0].reason; got != gwapiv1.PolicyReasonInvalid {
			t.Errorf("Accepted: want %s, got %s", gwapiv1.PolicyReasonInvalid, got)
		}
	}
}

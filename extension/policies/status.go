// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

const (
	// ControllerName is the controller name of the installed extension in an ancestor's status.
	ControllerName = parse.ExtensionController

	// maxAncestors and maxConflicts are the limits of the API.
	maxAncestors = 16
	maxConflicts = 64
)

// An ancestor of a policy, and whether the policy is accepted for it.
type ancestor struct {
	ref     gwapiv1.ParentReference
	reason  gwapiv1.PolicyConditionReason
	message string

	// certificateRefs is the state of the Secrets of the rules. Nil if they reference none.
	certificateRefs *certificateRefs
}

// A state is the content of a policy's status.
type state struct {
	generation int64

	// controller is the controller name in the status.
	controller gwapiv1.GatewayController

	ancestors []ancestor
	rules     []gatewayv1alpha1.RoutePolicyRuleStatus
	conflicts []gatewayv1alpha1.RoutePolicyConflict
}

// states returns the states of all policies of a snapshot.
func states(s *ir.Snapshot) map[types.NamespacedName]*state {
	out := map[types.NamespacedName]*state{}
	// idle holds the rules of each target that are never reached.
	idle := map[ir.PolicyTarget]map[*ir.PolicyRule]conflict{}
	var all []conflict
	targets, listeners := attached(s)
	for _, t := range targets {
		rules := s.Policies().Attached(t.PolicyTarget)
		idle[t.PolicyTarget] = map[*ir.PolicyRule]conflict{}
		for _, c := range conflictsOf(rules) {
			idle[t.PolicyTarget][c.second] = c
			all = append(all, c)
		}
		for _, far := range lessSpecificTargets(t, listeners) {
			all = append(all, overridden(rules, s.Policies().Attached(far))...)
		}
	}
	for p := range s.Policies().All() {
		out[p.Name] = stateOf(s, p, idle)
	}
	addConflicts(out, all)
	return out
}

// attached returns the existing targets of policies, each once, and which of them are
// listeners.
func attached(s *ir.Snapshot) (targets map[ir.PolicyTarget]ir.Attachment, listeners []ir.PolicyTarget) {
	targets = map[ir.PolicyTarget]ir.Attachment{}
	for p := range s.Policies().All() {
		for _, t := range p.Targets {
			if _, seen := targets[t.PolicyTarget]; seen || !t.Found {
				continue
			}
			targets[t.PolicyTarget] = t
			if t.Route == "" && t.Section != "" {
				listeners = append(listeners, t.PolicyTarget)
			}
		}
	}
	return targets, listeners
}

// restrictTo removes all ancestors except for one Gateway.
func (s *state) restrictTo(gateway types.NamespacedName) {
	s.ancestors = slices.DeleteFunc(s.ancestors, func(a ancestor) bool {
		return refString(a.ref) != refString(targetRef(ir.PolicyTarget{NamespacedName: gateway}))
	})
}

// stateOf returns the state of a policy.
func stateOf(snapshot *ir.Snapshot, p *ir.RoutePolicy, idle map[ir.PolicyTarget]map[*ir.PolicyRule]conflict) *state {
	out := &state{generation: p.Generation, controller: ControllerName}
	acts := map[string]bool{}
	for _, r := range p.Rules {
		s := gatewayv1alpha1.RoutePolicyRuleStatus{Name: r.Name, Message: r.Problem}
		for _, t := range p.Targets {
			c, covered := idle[t.PolicyTarget][r]
			switch {
			case r.Problem != "":
			case !t.Found:
			case covered:
				s.Message = fmt.Sprintf("Rule %s of %s matches all its requests first; change one of the rules, or their priorities", c.first.Name, c.first.Policy)
			default:
				s.Active = true
				for _, g := range t.Gateways {
					acts[g.String()] = true
				}
			}
		}
		switch {
		case s.Active:
			s.Message = cmp.Or(r.DenialNotice(), plaintextBackend(snapshot, p, r), p.Notices[r.Name])
		case s.Message == "":
			s.Message = "No target exists"
		}
		if n, ok := p.Devices[r.Name]; ok {
			s.Devices = &n
		}
		out.rules = append(out.rules, s)
	}
	out.ancestors = ancestorsOf(p, acts)
	return out
}

// reportWithoutDiscovery sets the message of rules with devices if the extension is installed
// without discoveries.
func (s *state) reportWithoutDiscovery() {
	for i := range s.rules {
		if r := &s.rules[i]; r.Active && r.Devices != nil && *r.Devices == 0 {
			r.Message = "Devices are not discovered: the extension is installed without discoveries. A Deny rule denies every client that meets its other conditions"
		}
	}
}

// ancestorsOf returns the ancestors of a policy: Gateways where it has an effect, and missing
// targets.
func ancestorsOf(p *ir.RoutePolicy, acts map[string]bool) []ancestor {
	usable := slices.ContainsFunc(p.Rules, func(r *ir.PolicyRule) bool { return r.Problem == "" })
	closed := closedRule(p)
	refused, own := refusedRoutes(p)
	var out []ancestor
	add := func(a ancestor) {
		if !slices.ContainsFunc(out, func(o ancestor) bool { return refString(o.ref) == refString(a.ref) }) {
			out = append(out, a)
		}
	}
	for _, t := range p.Targets {
		switch {
		case !t.Found:
			add(ancestor{ref: targetRef(t.PolicyTarget), reason: gwapiv1.PolicyReasonTargetNotFound, message: "It does not exist; create it, or correct targetRefs"})
		case len(t.Gateways) == 0:
			add(ancestor{ref: targetRef(t.PolicyTarget), reason: gwapiv1.PolicyReasonTargetNotFound, message: "It is attached to no existing Gateway"})
		}
		for _, g := range t.Gateways {
			a := ancestor{ref: targetRef(ir.PolicyTarget{NamespacedName: g}), reason: gwapiv1.PolicyReasonAccepted, message: "The policy has been accepted"}
			switch {
			case !usable:
				a.reason, a.message = gwapiv1.PolicyReasonInvalid, "No rule can be used; see status.rules"
			case refused != "" && own:
				a.reason, a.message = gwapiv1.PolicyReasonInvalid, refused
			case refused != "" && acts[g.String()] && closed == "":
				// The routes of others do not make the policy invalid.
				a.message += ". " + refused
			case closed != "":
				a.reason, a.message = gwapiv1.PolicyReasonInvalid, closed
			case p.FailOpen && deniesRequests(p):
				a.reason, a.message = gwapiv1.PolicyReasonInvalid, failsOpen
			case !acts[g.String()]:
				a.reason, a.message = gwapiv1.PolicyReasonConflicted, "Rules of other policies match all requests first; see status.policyConflicts"
			}
			a.certificateRefs = certificateRefsOf(p)
			add(a)
		}
	}
	slices.SortFunc(out, compareAncestors)
	return out
}

// failsOpen is the message about a policy that Envoy Gateway may drop.
const failsOpen = "Envoy Gateway's configuration has failOpen: true for the extension. When the extension returns an error, Envoy Gateway publishes the Gateway without this policy, and denied clients are let in: set failOpen: false"

// deniesRequests reports whether a rule of the policy denies requests.
func deniesRequests(p *ir.RoutePolicy) bool {
	return slices.ContainsFunc(p.Rules, func(r *ir.PolicyRule) bool { return r.Deny && r.Problem == "" })
}

// closedRule returns a message about the first rule that does not admit the clients in its
// spec. It is empty if there is none.
func closedRule(p *ir.RoutePolicy) string {
	for _, r := range p.Rules {
		if message := r.DenialNotice(); message != "" {
			return fmt.Sprintf("Rule %s: %s", r.Name, message)
		}
	}
	return ""
}

// maxRefused is the number of routes in a message.
const maxRefused = 3

// refusedRoutes returns a message about the routes that policies insert too many routes for, and
// whether one is of the policy's namespace. The message is empty if there are none.
func refusedRoutes(p *ir.RoutePolicy) (message string, own bool) {
	if len(p.Refused) == 0 {
		return "", false
	}
	routes := slices.SortedFunc(maps.Keys(p.Refused), func(a, b ir.RouteKey) int {
		return cmp.Or(ir.CompareNames(a.NamespacedName, b.NamespacedName), cmp.Compare(a.Kind, b.Kind))
	})
	names := make([]string, 0, maxRefused)
	for _, k := range routes[:min(len(routes), maxRefused)] {
		names = append(names, k.String())
	}
	more := ""
	if n := len(routes) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("Requests of %s%s are answered 403: %s; use fewer matches, hostnames, rules or routes", strings.Join(names, ", "), more, p.Refused[routes[0]]),
		slices.ContainsFunc(routes, func(k ir.RouteKey) bool { return k.Namespace == p.Name.Namespace })
}

// compareAncestors compares by reference.
func compareAncestors(a, b ancestor) int { return cmp.Compare(refString(a.ref), refString(b.ref)) }

// targetRef returns the reference to a target.
func targetRef(t ir.PolicyTarget) gwapiv1.ParentReference {
	kind := gwapiv1.Kind("Gateway")
	switch t.Route {
	case ir.KindHTTPRoute:
		kind = "HTTPRoute"
	case ir.KindGRPCRoute:
		kind = "GRPCRoute"
	default:
	}
	out := gwapiv1.ParentReference{
		Group: ptr.To[gwapiv1.Group](gwapiv1.GroupName), Kind: &kind,
		Namespace: ptr.To(gwapiv1.Namespace(t.Namespace)), Name: gwapiv1.ObjectName(t.Name),
	}
	if t.Section != "" {
		out.SectionName = ptr.To(gwapiv1.SectionName(t.Section))
	}
	return out
}

// refString formats a reference for comparisons.
func refString(r gwapiv1.ParentReference) string {
	return strings.Join([]string{
		string(ptr.Deref(r.Kind, "")), string(ptr.Deref(r.Namespace, "")), string(r.Name), string(ptr.Deref(r.SectionName, "")),
	}, "/")
}

// addConflicts adds conflicts to the states of both policies.
func addConflicts(byPolicy map[types.NamespacedName]*state, all []conflict) {
	add := func(r, other *ir.PolicyRule, k gatewayv1alpha1.RoutePolicyConflictType, precedes bool) {
		c := gatewayv1alpha1.RoutePolicyConflict{Type: k, Rule: r.Name, TakesPrecedence: precedes, ConflictingPolicy: other.Policy.String(), ConflictingRule: other.Name}
		if s := byPolicy[r.Policy]; s != nil && !slices.Contains(s.conflicts, c) {
			s.conflicts = append(s.conflicts, c)
		}
	}
	for _, c := range all {
		add(c.second, c.first, c.kind, false)
		add(c.first, c.second, c.kind, true)
	}
	for _, s := range byPolicy {
		slices.SortFunc(s.conflicts, func(a, b gatewayv1alpha1.RoutePolicyConflict) int {
			return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.ConflictingPolicy, b.ConflictingPolicy), cmp.Compare(a.ConflictingRule, b.ConflictingRule), cmp.Compare(a.Type, b.Type), cmp.Compare(strconv.FormatBool(a.TakesPrecedence), strconv.FormatBool(b.TakesPrecedence)))
		})
		s.conflicts = s.conflicts[:min(len(s.conflicts), maxConflicts)]
	}
}

// status returns the status of the policy. Ancestors of other controllers stay, and conditions
// keep the time of their last change.
func (s *state) status(previous gatewayv1alpha1.TailscaleRoutePolicyStatus) gatewayv1alpha1.TailscaleRoutePolicyStatus {
	out := gatewayv1alpha1.TailscaleRoutePolicyStatus{Rules: s.rules, PolicyConflicts: s.conflicts}
	var others []gwapiv1.PolicyAncestorStatus
	for _, o := range previous.Ancestors {
		if o.ControllerName != s.controller {
			others = append(others, o)
		}
	}
	included, suffix := s.fit(maxAncestors - len(others))
	for _, a := range included {
		current := gwapiv1.PolicyAncestorStatus{AncestorRef: a.ref, ControllerName: s.controller}
		for _, o := range previous.Ancestors {
			if o.ControllerName == s.controller && refString(o.AncestorRef) == refString(a.ref) {
				current.Conditions = slices.Clone(o.Conditions)
			}
		}
		condition := metav1.Condition{
			Type: string(gwapiv1.PolicyConditionAccepted), Status: metav1.ConditionTrue,
			Reason: string(a.reason), Message: a.message + suffix, ObservedGeneration: s.generation,
		}
		if a.reason != gwapiv1.PolicyReasonAccepted {
			condition.Status = metav1.ConditionFalse
		}
		kmeta.SetStatusCondition(&current.Conditions, condition)
		a.certificateRefs.setCondition(&current.Conditions, s.generation)
		out.Ancestors = append(out.Ancestors, current)
	}
	out.Ancestors = append(out.Ancestors, others...)
	if len(included) == 0 && suffix != "" {
		out.Rules = slices.Clone(s.rules)
		for i := range out.Rules {
			out.Rules[i].Message = cmp.Or(out.Rules[i].Message, "status.ancestors has no space for this policy: other controllers use all of it")
		}
	}
	return out
}

// fit returns the ancestors that fit into the space that other controllers leave. Ancestors
// with problems come first. The suffix for messages has the number of omitted ancestors.
func (s *state) fit(room int) (included []ancestor, suffix string) {
	if len(s.ancestors) <= room {
		return s.ancestors, ""
	}
	room = max(room, 0)
	var accepted []ancestor
	for _, a := range s.ancestors {
		if a.reason == gwapiv1.PolicyReasonAccepted && (a.certificateRefs == nil || a.certificateRefs.reason == "") {
			accepted = append(accepted, a)
			continue
		}
		included = append(included, a)
	}
	included = append(included, accepted...)[:room]
	slices.SortFunc(included, compareAncestors)
	return included, fmt.Sprintf("; %d more ancestors are omitted, of which %d are accepted", len(s.ancestors)-room, min(len(accepted), len(s.ancestors)-room))
}

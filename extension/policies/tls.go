// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"slices"

	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// tlsAncestors returns the ancestors of the BackendTLSPolicies that are not applied to a target: the
// served Gateways of the routes and TailscaleRoutePolicies that name it. Envoy Gateway reports these
// policies as well, but accepts some that the extension cannot apply, such as with a Secret or a
// ClusterTrustBundle (getCaCertsFromCARefs in its internal/gatewayapi/backendtlspolicy.go).
func tlsAncestors(s *ir.Snapshot, serves func(gateway types.NamespacedName) bool) map[types.NamespacedName][]tlsAncestor {
	if !hasUnapplied(s) {
		return nil
	}
	type key struct{ policy, gateway types.NamespacedName }
	found := map[key]ir.UnappliedTLSPolicy{}
	add := func(k ir.TargetKey, gateways []types.NamespacedName) {
		t := s.Target(k)
		if t == nil {
			return
		}
		for _, p := range t.TLSPolicies {
			for _, g := range gateways {
				k := key{policy: p.Name, gateway: g}
				if existing, ok := found[k]; serves(g) && (!ok || compareUnapplied(p, existing) < 0) {
					found[k] = p
				}
			}
		}
	}
	for r := range s.Routes() {
		for i := range r.Rules {
			for _, b := range r.Rules[i].Backends {
				if b.Ours() && s.Permitted(r.Key, b) {
					add(b.Target(r.Key.Kind), r.Gateways)
				}
			}
		}
	}
	for p := range s.Policies().All() {
		for _, rule := range p.Rules {
			for _, b := range rule.Backends {
				for _, t := range p.Targets {
					for _, kind := range []ir.RouteKind{ir.KindHTTPRoute, ir.KindGRPCRoute} {
						if t.Route == "" || t.Route == kind {
							add(b.Target(kind), t.Gateways)
						}
					}
				}
			}
		}
	}
	out := map[types.NamespacedName][]tlsAncestor{}
	for k, p := range found {
		out[k.policy] = append(out[k.policy], tlsAncestor{gateway: k.gateway, UnappliedTLSPolicy: p})
	}
	for _, ancestors := range out {
		slices.SortFunc(ancestors, func(a, b tlsAncestor) int { return ir.CompareNames(a.gateway, b.gateway) })
	}
	return out
}

func hasUnapplied(s *ir.Snapshot) bool {
	for t := range s.Targets() {
		if len(t.TLSPolicies) > 0 {
			return true
		}
	}
	return false
}

// compareUnapplied orders the reasons of a policy with several targets: requests that are not answered
// come before a policy that another one replaces.
func compareUnapplied(a, b ir.UnappliedTLSPolicy) int {
	conflicts := func(p ir.UnappliedTLSPolicy) int {
		if p.Accepted == string(gwapiv1.PolicyReasonConflicted) {
			return 1
		}
		return 0
	}
	return cmp.Or(conflicts(a)-conflicts(b), cmp.Compare(a.Message, b.Message))
}

// A tlsAncestor is a Gateway for which a BackendTLSPolicy is not applied.
type tlsAncestor struct {
	gateway types.NamespacedName
	ir.UnappliedTLSPolicy
}

func (a tlsAncestor) ref() gwapiv1.ParentReference {
	return targetRef(ir.PolicyTarget{NamespacedName: a.gateway})
}

// conditions returns the conditions of the ancestor. Conditions that do not change keep their time.
func (a tlsAncestor) conditions(previous []metav1.Condition) []metav1.Condition {
	message := "The extension does not apply the policy: it " + a.Message
	if a.Accepted != string(gwapiv1.PolicyReasonConflicted) {
		message = "Requests to the policy's TailscaleServices and TailscaleEndpoints get a 503 response: it " + a.Message
	}
	var out []metav1.Condition
	set := func(kind gwapiv1.PolicyConditionType, reason string) {
		if c := kmeta.FindStatusCondition(previous, string(kind)); c != nil {
			out = append(out, *c)
		}
		kmeta.SetStatusCondition(&out, metav1.Condition{
			Type: string(kind), Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: a.Generation,
		})
	}
	set(gwapiv1.PolicyConditionAccepted, a.Accepted)
	if a.ResolvedRefs != "" {
		set(gwapiv1.BackendTLSPolicyConditionResolvedRefs, a.ResolvedRefs)
	}
	return out
}

// withTLSAncestors returns the ancestors of a status with those of a controller replaced. Those of other
// controllers stay, and leave room for at most the others of the 16 that the API permits. None moves:
// another controller may add its own at the end, too.
func withTLSAncestors(previous []gwapiv1.PolicyAncestorStatus, controller gwapiv1.GatewayController, ours []tlsAncestor) []gwapiv1.PolicyAncestorStatus {
	others := 0
	for _, a := range previous {
		if a.ControllerName != controller {
			others++
		}
	}
	missing := slices.Clone(ours[:min(len(ours), max(0, maxAncestors-others))])
	var out []gwapiv1.PolicyAncestorStatus
	for _, a := range previous {
		if a.ControllerName == controller {
			i := slices.IndexFunc(missing, func(m tlsAncestor) bool { return refString(m.ref()) == refString(a.AncestorRef) })
			if i < 0 {
				continue
			}
			a.Conditions = missing[i].conditions(a.Conditions)
			missing = slices.Delete(missing, i, i+1)
		}
		out = append(out, a)
	}
	for _, a := range missing {
		out = append(out, gwapiv1.PolicyAncestorStatus{AncestorRef: a.ref(), ControllerName: controller, Conditions: a.conditions(nil)})
	}
	return out
}

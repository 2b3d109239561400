// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// tooManyConfigMaps is the reason of the condition ResolvedRefs for a ConfigMap beyond the limit of its
// namespace.
const tooManyConfigMaps gwapiv1.PolicyConditionReason = "TooManyConfigMaps"

// tlsRefs are the kinds of lookups for the BackendTLSPolicies of each of our kinds.
var tlsRefs = map[gwapiv1.Kind]refKind{
	parse.KindTailscaleServices:  refServicesTLS,
	parse.KindTailscaleEndpoints: refEndpointsTLS,
}

// putTLSPolicy stores a BackendTLSPolicy.
func putTLSPolicy(all *objects, o *gwapiv1.BackendTLSPolicy, change *input, p *pending) {
	shared := map[refKind][]types.NamespacedName{}
	for _, t := range o.Spec.TargetRefs {
		if k, ok := tlsRefs[t.Kind]; ok && t.Group == gatewayv1alpha1.Group {
			shared[k] = append(shared[k], ir.Sibling(change.name, string(t.Name)))
		}
	}
	for _, k := range []refKind{refServicesTLS, refEndpointsTLS} {
		putGrouped(all, p, all.tls[k-refServicesTLS], k, change.name, o, change.Deleted, shared[k]...)
	}
	wantConfigMaps(all, o, change.name, !change.Deleted && len(shared) > 0)
}

// A targetedTLS is a BackendTLSPolicy of a target. It is exact if it targets the port.
type targetedTLS struct {
	*gwapiv1.BackendTLSPolicy
	exact bool
}

// precedes reports whether a policy takes precedence over another one: a policy of the port over one
// of all ports, then the older one, then the first by name.
func (p targetedTLS) precedes(o targetedTLS) bool {
	if p.exact != o.exact {
		return p.exact
	}
	if !p.CreationTimestamp.Equal(&o.CreationTimestamp) {
		return p.CreationTimestamp.Before(&o.CreationTimestamp)
	}
	return ir.CompareNames(client.ObjectKeyFromObject(p), client.ObjectKeyFromObject(o)) < 0
}

// tlsOf returns the TLS settings of a target from its BackendTLSPolicy, and the policies that are not
// applied. With a problem nothing may be sent to the target.
//
// A ConfigMap that was named just before is not known until the API server has answered a request. A
// target that serves with TLS until then keeps these settings, as if the policy had changed later: every
// connection is still verified, as the settings before demanded. To any other target nothing is sent,
// neither without TLS nor with the settings of a policy that could not be applied. It had no endpoints
// with TLS that it could lose.
func (v *view) tlsOf(k ir.TargetKey, old *ir.Target) (tls *ir.UpstreamTLS, problem string, unapplied []ir.UnappliedTLSPolicy) {
	all := v.tlsPolicies(k)
	if len(all) == 0 {
		return nil, "", nil
	}
	best := all[0]
	for _, p := range all[1:] {
		if p.precedes(best) {
			best = p
		}
	}
	tls, wrong := v.upstreamTLS(best.BackendTLSPolicy)
	switch {
	case v.awaited && old != nil && old.Problem == "" && old.Shape.TLS != nil:
		tls = old.Shape.TLS
		wrong.Message += "; until it is, targets that have TLS settings keep these"
		unapplied = append(unapplied, *wrong)
	case wrong != nil:
		problem = "BackendTLSPolicy " + wrong.Name.String() + " " + wrong.Message
		unapplied = append(unapplied, *wrong)
	}
	for _, p := range all {
		// A policy of all ports is meant to be replaced by one of the port.
		if p.BackendTLSPolicy == best.BackendTLSPolicy || p.exact != best.exact {
			continue
		}
		unapplied = append(unapplied, ir.UnappliedTLSPolicy{
			Name: client.ObjectKeyFromObject(p), Generation: p.Generation, Accepted: string(gwapiv1.PolicyReasonConflicted),
			Message: "conflicts with BackendTLSPolicy " + best.Name + ", which has the same target and takes precedence; change the targetRefs of one of them",
		})
	}
	slices.SortFunc(unapplied, func(a, b ir.UnappliedTLSPolicy) int { return ir.CompareNames(a.Name, b.Name) })
	return tls, problem, unapplied
}

// tlsPolicies returns the BackendTLSPolicies of a target, each once, in the order of their names. The
// name of a section is the number of the port.
func (v *view) tlsPolicies(k ir.TargetKey) []targetedTLS {
	kind, refs := gwapiv1.Kind(parse.KindTailscaleServices), refServicesTLS
	if k.Kind == ir.TargetEndpoints {
		kind, refs = parse.KindTailscaleEndpoints, refEndpointsTLS
	}
	var out []targetedTLS
	for _, p := range v.tls[refs-refServicesTLS].sorted(v.lookup(refs, types.NamespacedName{Namespace: k.Namespace, Name: k.Name})) {
		targets, exact := false, false
		for _, t := range p.Spec.TargetRefs {
			if t.Group != gatewayv1alpha1.Group || t.Kind != kind || string(t.Name) != k.Name {
				continue
			}
			section := string(ptr.Deref(t.SectionName, ""))
			if section != "" && section != strconv.Itoa(int(k.Port)) {
				continue
			}
			targets, exact = true, exact || section != ""
		}
		if targets {
			out = append(out, targetedTLS{BackendTLSPolicy: p, exact: exact})
		}
	}
	return out
}

// upstreamTLS returns the TLS settings of a policy, or why it cannot be applied.
func (v *view) upstreamTLS(p *gwapiv1.BackendTLSPolicy) (*ir.UpstreamTLS, *ir.UnappliedTLSPolicy) {
	wrong := func(accepted, refs gwapiv1.PolicyConditionReason, message string) *ir.UnappliedTLSPolicy {
		return &ir.UnappliedTLSPolicy{
			Name: client.ObjectKeyFromObject(p), Generation: p.Generation, Accepted: string(accepted), ResolvedRefs: string(refs), Message: message,
		}
	}
	val := p.Spec.Validation
	out := &ir.UpstreamTLS{ServerName: string(val.Hostname)}
	for _, n := range val.SubjectAltNames {
		switch n.Type {
		case gwapiv1.URISubjectAltNameType:
			out.AltNames = append(out.AltNames, ir.AltName{URI: true, Value: string(n.URI)})
		case gwapiv1.HostnameSubjectAltNameType:
			out.AltNames = append(out.AltNames, ir.AltName{Value: string(n.Hostname)})
		default:
			// Envoy would trust more certificates without the name.
			return nil, wrong(gwapiv1.PolicyReasonInvalid, "", "has a subjectAltName of type "+string(n.Type)+", which is not supported; use Hostname or URI")
		}
	}
	const noCA, badRef = gwapiv1.BackendTLSPolicyReasonNoValidCACertificate, gwapiv1.BackendTLSPolicyReasonInvalidCACertificateRef
	var trusted []backendtls.Authorities
	for _, r := range val.CACertificateRefs {
		if !namesConfigMap(r) {
			return nil, wrong(noCA, gwapiv1.BackendTLSPolicyReasonInvalidKind, "has a certificate that is not in a ConfigMap, but in a "+string(r.Kind)+"; put it into a ConfigMap, with the key "+backendtls.CAKey)
		}
		n := v.lookup(refConfigMap, types.NamespacedName{Namespace: p.Namespace, Name: string(r.Name)})
		ca := v.configMaps[n]
		switch {
		case !v.configMapShares.admits(p.Namespace, n):
			return nil, wrong(noCA, tooManyConfigMaps, fmt.Sprintf("names ConfigMap %s, which is not read: BackendTLSPolicies of the namespace name more than %d ConfigMaps, or those of all namespaces more than %d, and this one belongs to the newest; name fewer ConfigMaps", r.Name, limits.NamespaceConfigMaps, limits.ConfigMaps))
		case ca == nil:
			v.awaited = true
			return nil, wrong(noCA, badRef, "names ConfigMap "+string(r.Name)+", which is not known yet")
		case ca.Problem != "":
			return nil, wrong(noCA, badRef, "names ConfigMap "+string(r.Name)+", which "+ca.Problem)
		}
		trusted = append(trusted, ca.Authorities)
	}
	var problem string
	if out.CA, problem = backendtls.JoinAuthorities(trusted...); problem != "" {
		return nil, wrong(noCA, badRef, "names ConfigMaps that cannot be used "+problem)
	}
	switch wellKnown := ptr.Deref(val.WellKnownCACertificates, ""); {
	case out.CA != "" || wellKnown == gwapiv1.WellKnownCACertificatesSystem:
		return out, nil
	case wellKnown != "":
		return nil, wrong(gwapiv1.PolicyReasonInvalid, "", "has wellKnownCACertificates "+string(wellKnown)+", which is not supported; use System or caCertificateRefs")
	}
	return nil, wrong(noCA, "", "has neither caCertificateRefs nor wellKnownCACertificates System; set one")
}

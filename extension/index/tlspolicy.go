// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// tlsRefs are the kinds of lookups for the BackendTLSPolicies of each of our kinds.
var tlsRefs = map[gwapiv1.Kind]refKind{
	parse.KindTailscaleServices:  refServicesTLS,
	parse.KindTailscaleEndpoints: refEndpointsTLS,
}

// putTLSPolicy stores a BackendTLSPolicy.
func (all *objects) putTLSPolicy(o *gwapiv1.BackendTLSPolicy, in *input, p *pending) {
	shared := map[refKind][]types.NamespacedName{}
	for _, t := range o.Spec.TargetRefs {
		if k, ok := tlsRefs[t.Kind]; ok && t.Group == gatewayv1alpha1.Group {
			shared[k] = append(shared[k], ir.Sibling(in.name, string(t.Name)))
		}
	}
	for _, k := range []refKind{refServicesTLS, refEndpointsTLS} {
		putGrouped(all, p, all.tls[k-refServicesTLS], k, in.name, o, in.Gone, shared[k]...)
	}
}

// tlsOf returns the TLS settings of a target from its BackendTLSPolicy. A policy of its port
// takes precedence over one of all ports, then the older one, then the first by name. The
// name of a section is the number of the port.
func (v *view) tlsOf(k ir.TargetKey) (*ir.UpstreamTLS, string) {
	kind, refs := gwapiv1.Kind(parse.KindTailscaleServices), refServicesTLS
	if k.Kind == ir.TargetEndpoints {
		kind, refs = parse.KindTailscaleEndpoints, refEndpointsTLS
	}
	var best *gwapiv1.BackendTLSPolicy
	exact := false
	for _, p := range v.tls[refs-refServicesTLS].sorted(v.lookup(refs, types.NamespacedName{Namespace: k.Namespace, Name: k.Name})) {
		for _, t := range p.Spec.TargetRefs {
			if t.Group != gatewayv1alpha1.Group || t.Kind != kind || string(t.Name) != k.Name {
				continue
			}
			section := string(ptr.Deref(t.SectionName, ""))
			if section != "" && section != strconv.Itoa(int(k.Port)) {
				continue
			}
			better := best == nil || section != "" && !exact ||
				(section != "") == exact && p.CreationTimestamp.Before(&best.CreationTimestamp)
			if better {
				best, exact = p, section != ""
			}
		}
	}
	if best == nil {
		return nil, ""
	}
	return v.upstreamTLS(best)
}

// upstreamTLS returns the TLS settings of a policy, or its problem. With a problem nothing
// may be sent.
func (v *view) upstreamTLS(p *gwapiv1.BackendTLSPolicy) (*ir.UpstreamTLS, string) {
	name := "BackendTLSPolicy " + p.Namespace + "/" + p.Name
	val := p.Spec.Validation
	out := &ir.UpstreamTLS{ServerName: string(val.Hostname)}
	for _, n := range val.SubjectAltNames {
		if n.Type == gwapiv1.URISubjectAltNameType {
			out.AltNames = append(out.AltNames, ir.AltName{URI: true, Value: string(n.URI)})
			continue
		}
		out.AltNames = append(out.AltNames, ir.AltName{Value: string(n.Hostname)})
	}
	var trusted []parse.Authorities
	for _, r := range val.CACertificateRefs {
		if r.Group != "" || r.Kind != parse.KindConfigMap {
			return nil, name + " has a certificate that is not in a ConfigMap; put it into one, with the key " + parse.CAKey
		}
		ca, ok := v.configMaps[v.lookup(refConfigMap, types.NamespacedName{Namespace: p.Namespace, Name: string(r.Name)})]
		if !ok {
			ca = parse.ParseAuthorities(nil)
		}
		if ca.Problem != "" {
			return nil, name + " names ConfigMap " + string(r.Name) + ", which " + ca.Problem
		}
		trusted = append(trusted, ca)
	}
	var problem string
	if out.CA, problem = parse.JoinAuthorities(trusted...); problem != "" {
		return nil, name + " names ConfigMaps that cannot be used " + problem
	}
	if out.CA == "" && ptr.Deref(val.WellKnownCACertificates, "") != gwapiv1.WellKnownCACertificatesSystem {
		return nil, name + " has neither caCertificateRefs nor wellKnownCACertificates System; set one"
	}
	return out, ""
}

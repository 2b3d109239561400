// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package refgrant evaluates ReferenceGrants for references to objects of other namespaces. It
// is pure.
package refgrant

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// Grants are ReferenceGrants by name.
type Grants map[types.NamespacedName]*gwapiv1beta1.ReferenceGrantSpec

// A Referrer is the kind and namespace of the objects with the reference.
type Referrer struct {
	Group     gwapiv1.Group
	Kind      gwapiv1.Kind
	Namespace string
}

// Permit reports whether a reference to an object of a kind is permitted. References within a
// namespace always are.
func (gs Grants) Permit(referrer Referrer, group gwapiv1.Group, kind gwapiv1.Kind, n types.NamespacedName) bool {
	if referrer.Namespace == n.Namespace {
		return true
	}
	for key, g := range gs {
		if key.Namespace != n.Namespace {
			continue
		}
		from, to := slices.ContainsFunc(g.From, referrer.is), false
		for _, t := range g.To {
			to = to || t.Group == group && t.Kind == kind && (t.Name == nil || string(*t.Name) == n.Name)
		}
		if from && to {
			return true
		}
	}
	return false
}

// Namespaces returns the other namespaces with a ReferenceGrant for a referrer, to whatever objects.
func (gs Grants) Namespaces(referrer Referrer) map[string]struct{} {
	out := map[string]struct{}{}
	for n, g := range gs {
		if n.Namespace != referrer.Namespace && slices.ContainsFunc(g.From, referrer.is) {
			out[n.Namespace] = struct{}{}
		}
	}
	return out
}

// is reports whether a ReferenceGrant names the referrer.
func (r Referrer) is(f gwapiv1beta1.ReferenceGrantFrom) bool {
	return f.Group == r.Group && f.Kind == r.Kind && string(f.Namespace) == r.Namespace
}

// PermitGateway reports whether TailscaleGateways of a namespace may share a Gateway, and have
// its listeners trust headers that identify the client.
func (gs Grants) PermitGateway(namespace string, gateway types.NamespacedName) bool {
	return gs.Permit(Referrer{
		Group: gatewayv1alpha1.Group, Kind: gatewayv1alpha1.TailscaleGatewayKind, Namespace: namespace,
	}, gwapiv1.GroupName, "Gateway", gateway)
}

// PermitService reports whether objects of a kind may name a Service.
func (gs Grants) PermitService(referrer Referrer, service types.NamespacedName) bool {
	return gs.Permit(referrer, corev1.GroupName, kindService, service)
}

// TailscaleServices returns the referrer for TailscaleServices of a namespace.
func TailscaleServices(namespace string) Referrer {
	return Referrer{Group: gatewayv1alpha1.Group, Kind: gatewayv1alpha1.TailscaleServicesKind, Namespace: namespace}
}

const (
	kindService = "Service"

	// labelServices is the label in DNS names that follows the namespace of a Service
	// (https://github.com/kubernetes/dns/blob/master/docs/specification.md).
	labelServices = "svc"
)

// ServiceOf returns the Service that a DNS name of a Service or of one of its pods belongs to:
// [...]SERVICE.NAMESPACE.svc, with or without the cluster's domain. Clusters choose their domain,
// so any domain may be the cluster's.
func ServiceOf(host string) (types.NamespacedName, bool) {
	labels := strings.Split(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	for i := len(labels) - 1; i > 1; i-- {
		if labels[i] == labelServices {
			return types.NamespacedName{Namespace: labels[i-1], Name: labels[i-2]}, true
		}
	}
	return types.NamespacedName{}, false
}

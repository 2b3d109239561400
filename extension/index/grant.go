// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// ReferenceGrants by their names.
type ReferenceGrants map[types.NamespacedName]*gwapiv1beta1.ReferenceGrantSpec

// A referrer is who names others: objects of a kind, in a namespace.
type referrer struct {
	group     gwapiv1.Group
	kind      gwapiv1.Kind
	namespace string
}

func policiesOf(namespace string) referrer {
	return referrer{group: gatewayv1alpha1.Group, kind: gatewayv1alpha1.TailscaleRoutePolicyKind, namespace: namespace}
}

func gatewaysOf(namespace string) referrer {
	return referrer{group: gwapiv1.GroupName, kind: kindGateway, namespace: namespace}
}

func tailscaleGatewaysOf(namespace string) referrer {
	return referrer{group: gatewayv1alpha1.Group, kind: gatewayv1alpha1.TailscaleGatewayKind, namespace: namespace}
}

// permit tells whether an object of a kind may be named: always in one's own namespace.
func (gs ReferenceGrants) permit(by referrer, group gwapiv1.Group, kind gwapiv1.Kind, n types.NamespacedName) bool {
	if by.namespace == n.Namespace {
		return true
	}
	for of, g := range gs {
		if of.Namespace != n.Namespace {
			continue
		}
		from, to := false, false
		for _, f := range g.From {
			from = from || f.Group == by.group && f.Kind == by.kind && string(f.Namespace) == by.namespace
		}
		for _, t := range g.To {
			to = to || t.Group == group && t.Kind == kind && (t.Name == nil || string(*t.Name) == n.Name)
		}
		if from && to {
			return true
		}
	}
	return false
}

// PermitIdentity tells whether TailscaleGateways of a namespace may have listeners of a
// Gateway believe headers that tell who asks. To share a Gateway they need no leave.
func (gs ReferenceGrants) PermitIdentity(namespace string, gateway types.NamespacedName) bool {
	return gs.permit(tailscaleGatewaysOf(namespace), gwapiv1.GroupName, kindGateway, gateway)
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

var decode = objecttest.With(parse.Scheme)

// objects decodes manifests. Each object has a UID.
func objects(t testing.TB, manifests ...string) []client.Object {
	t.Helper()
	all := decode(t, manifests...)
	for _, o := range all {
		o.SetUID(types.UID(o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetNamespace() + "/" + o.GetName()))
	}
	return all
}

// inputOf returns the input of the only TailscaleGateway with the given objects. Routes of all
// namespaces may reference Services of namespace open.
func inputOf(t testing.TB, of ...client.Object) input {
	t.Helper()
	return inputFor(t, types.NamespacedName{Namespace: "shop", Name: "web"}, of...)
}

// inputFor returns the input of one of several TailscaleGateways.
func inputFor(t testing.TB, n types.NamespacedName, of ...client.Object) input {
	t.Helper()
	in := input{
		permitted: func(r ir.RouteKey, b ir.BackendRef) bool {
			return b.Namespace == r.Namespace || b.Namespace == "open"
		},
		extension: tailnetv1alpha1.ReportedExtension{Version: "v1"},
	}
	for _, o := range of {
		switch o := o.(type) {
		case *gatewayv1alpha1.TailscaleGateway:
			in.neighborhood.gateways = append(in.neighborhood.gateways, o)
			in.peers = append(in.peers, o)
			if client.ObjectKeyFromObject(o) == n {
				in.object = o
			}
		case *gwapiv1.Gateway:
			in.gateway = o
		case *gwapiv1beta1.ReferenceGrant:
			if in.grants == nil {
				in.grants = refgrant.Grants{}
			}
			in.grants[client.ObjectKeyFromObject(o)] = &o.Spec
		case *gwapiv1.ListenerSet:
			in.sets = append(in.sets, o)
		case *gatewayv1alpha1.TailscaleServices:
			if isLocal(o) && o.Namespace == n.Namespace {
				in.local.services = append(in.local.services, o)
			}
			if gatewayBackend(o) != nil {
				in.neighborhood.services = append(in.neighborhood.services, o)
			}
			if ownerByLabels(o) == n {
				in.services = append(in.services, o)
			}
		case *gatewayv1alpha1.TailscaleEndpoints:
			if isLocal(o) && o.Namespace == n.Namespace {
				in.local.endpoints = append(in.local.endpoints, o)
			}
			in.neighborhood.endpoints = append(in.neighborhood.endpoints, o)
			if ownerByLabels(o) == n {
				in.endpoints = append(in.endpoints, o)
			}
		default:
			if generatedParents(o) != nil && ownerByLabels(o) == n {
				in.generated = append(in.generated, o)
			}
			in.routes = append(in.routes, o)
		}
	}
	in.peers = slices.DeleteFunc(in.peers, func(p *gatewayv1alpha1.TailscaleGateway) bool { return p.GatewayName() != in.object.GatewayName() })
	return in
}

const (
	tailscaleGateway = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleGateway
metadata: {name: web}
spec:
  gatewayRef: {name: web}
  tailnets:
  - name: prod
`

	gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec:
  gatewayClassName: eg
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, hostname: "*.example.com", allowedRoutes: {namespaces: {from: All}}}
  - {name: tls, port: 8443, protocol: TLS, tls: {mode: Passthrough}}
  - {name: db, port: 5432, protocol: TCP}
  - {name: dns, port: 53, protocol: UDP}
`

	listenerSet = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: extra, namespace: team}
spec:
  parentRef: {name: web, namespace: shop}
  listeners:
  - {name: extra, port: 8080, protocol: HTTP}
`
)

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
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
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
func inputOf(t testing.TB, objs ...client.Object) input {
	t.Helper()
	return inputFor(t, types.NamespacedName{Namespace: "shop", Name: "web"}, objs...)
}

// inputFor returns the input of one of several TailscaleGateways.
func inputFor(t testing.TB, n types.NamespacedName, objs ...client.Object) input {
	t.Helper()
	inputs := input{
		Input: routes.Input{Permitted: func(r ir.RouteKey, b ir.BackendRef) bool {
			return b.Namespace == r.Namespace || b.Namespace == "open"
		}},
		extension: tailnetv1alpha1.ReportedExtension{Version: "v1"},
	}
	for _, o := range objs {
		switch o := o.(type) {
		case *gatewayv1alpha1.TailscaleGateway:
			inputs.Neighborhood.Gateways = append(inputs.Neighborhood.Gateways, o)
			inputs.Peers = append(inputs.Peers, o)
			if client.ObjectKeyFromObject(o) == n {
				inputs.Object = o
			}
		case *gwapiv1.Gateway:
			inputs.Gateway = o
		case *gwapiv1beta1.ReferenceGrant:
			if inputs.Grants == nil {
				inputs.Grants = refgrant.Grants{}
			}
			inputs.Grants[client.ObjectKeyFromObject(o)] = &o.Spec
		case *gwapiv1.ListenerSet:
			inputs.Sets = append(inputs.Sets, o)
		case *gatewayv1alpha1.TailscaleServices:
			if isLocal(o) && o.Namespace == n.Namespace {
				inputs.Local.Services = append(inputs.Local.Services, o)
			}
			if gatewayBackend(o) != nil {
				inputs.Neighborhood.Services = append(inputs.Neighborhood.Services, o)
			}
			if routes.Owner(o) == n {
				inputs.Services = append(inputs.Services, o)
			}
		case *gatewayv1alpha1.TailscaleEndpoints:
			if isLocal(o) && o.Namespace == n.Namespace {
				inputs.Local.Endpoints = append(inputs.Local.Endpoints, o)
			}
			inputs.Neighborhood.Endpoints = append(inputs.Neighborhood.Endpoints, o)
			if routes.Owner(o) == n {
				inputs.Endpoints = append(inputs.Endpoints, o)
			}
		default:
			if routes.IsManaged(o) && routes.Owner(o) == n {
				inputs.Generated = append(inputs.Generated, o)
			}
			inputs.Routes = append(inputs.Routes, o)
		}
	}
	inputs.Peers = slices.DeleteFunc(inputs.Peers, func(p *gatewayv1alpha1.TailscaleGateway) bool { return p.GatewayName() != inputs.Object.GatewayName() })
	return inputs
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

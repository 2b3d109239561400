// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// objects decodes manifests.
var objects = objecttest.With(parse.Scheme)

func name(n string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: n} }

const (
	routeToWeb = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, generation: 1}
spec:
  parentRefs: [{name: gw, namespace: infra}]
  rules:
  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80}]
`
	tcpRouteToEdge = `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: edge}
spec:
  parentRefs: [{name: gw}]
  rules:
  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleEndpoints, name: edge, port: 5432}]
`
	slowPolicy = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: slow, namespace: hostile}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  rules: [{name: a, actions: [{type: Deny}]}]
`
	servicesWeb = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleServices
metadata: {name: web}
spec:
  selector: {}
  vipService: {ports: ["tcp:80"]}
  backends: [{name: app, port: 8080}]
`
)

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/objecttest"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// decode decodes manifests.
var decode = objecttest.With(parse.Scheme)

// apply applies or deletes the objects of manifests in a store.
func apply(t testing.TB, s *Store, deleted bool, manifests ...string) {
	t.Helper()
	var cs []Change
	for _, o := range decode(t, manifests...) {
		cs = append(cs, Change{Object: o, Deleted: deleted})
	}
	if err := applyChanges(s, cs...); err != nil {
		t.Fatal(err)
	}
}

// applyChanges applies changes to a store, which takes ConfigMaps from their watches.
func applyChanges(s *Store, cs ...Change) error {
	var others []Change
	var errs []error
	for _, c := range cs {
		o, ok := c.Object.(*corev1.ConfigMap)
		if !ok {
			others = append(others, c)
			continue
		}
		n := client.ObjectKeyFromObject(o)
		if c.Deleted {
			o = nil
		}
		state, err := s.ReadConfigMap(n, o)
		errs = append(errs, err)
		s.SetConfigMap(n, &state)
	}
	return errors.Join(append(errs, s.Apply(others...))...)
}

// snapshotOf returns the Snapshot of a store with the objects of manifests.
func snapshotOf(t testing.TB, manifests ...string) *ir.Snapshot {
	t.Helper()
	s := directStore()
	apply(t, s, false, manifests...)
	return s.Snapshot()
}

// compareSnapshots returns options that compare all contents of Snapshots except their
// revisions.
func compareSnapshots() cmp.Options {
	return cmp.Options{
		cmp.Exporter(func(typ reflect.Type) bool {
			return typ == reflect.TypeFor[ir.Snapshot]() || strings.HasPrefix(typ.Name(), "Table[") || strings.HasPrefix(typ.Name(), "shard[")
		}),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".owner" }, cmp.Ignore()),
		cmpopts.IgnoreFields(ir.Snapshot{}, "Revision", "PolicyRevision"),
		cmpopts.EquateComparable(netip.Prefix{}),
		cmpopts.EquateEmpty(),
	}
}

func name(n string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: n} }

// Manifests that several tests share.
const (
	routeToWeb = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, generation: 1, labels: {team: shop}}
spec:
  parentRefs: [{name: gw, namespace: infra}]
  rules:
  - backendRefs: [{group: gateway.tailscale.com, kind: TailscaleServices, name: web, port: 80}]
`
	policyWeb = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: web, generation: 1}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]
  rules:
  - name: canary
    matches: [{headers: [{name: X-Canary, value: "yes"}], tailnetDevice: {addresses: [100.64.0.0/24, "fd7a:115c:a1e0::1"]}}]
    actions: [{type: Route, route: {backendRefs: [{name: canary, port: 80}]}}]
`
	policyGateway = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleRoutePolicy
metadata: {name: all, namespace: infra}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw2, sectionName: http}]
  rules:
  - {name: closed, matches: [{path: {value: /admin}}], actions: [{type: Deny}]}
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
	serviceApp = `
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {ports: [{name: http, port: 8080, targetPort: 3000}]}
`
	sliceApp = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app-1, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
ports: [{name: http, port: 3000, protocol: TCP}]
endpoints:
- {addresses: [10.0.0.2], zone: b, conditions: {ready: true}}
- {addresses: [10.0.0.1], zone: a, conditions: {ready: true}}
- {addresses: [10.0.0.3], zone: a, conditions: {ready: false, serving: true, terminating: true}}
- {addresses: [10.0.0.4], zone: a, conditions: {ready: false}}
`
	attachmentWeb = `
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: ServiceAttachment
metadata: {name: web-edge-remote}
spec:
  endpoints: edge
  services: web
  direction: Egress
  clusterID: cluster-b
  serviceName: svc:web-0123456789
  addresses: [100.64.0.9]
  ports: [{port: 80}]
  healthCheck: {interval: 5s, timeout: 2s, healthyThreshold: 1, unhealthyThreshold: 2}
`
	proxySetEdge = `
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: ProxySet
metadata: {name: edge-proxies}
spec:
  endpoints: edge
  tailnet: corp
  sets:
  - {name: edge-in, direction: Ingress, replicas: 1}
  - {name: edge-out, direction: Egress, replicas: 2}
  targets:
  - {name: web-edge-remote/80, port: 80, protocol: TCP, proxyPort: 10007, weight: 1}
  - {name: db/5432, port: 5432, protocol: TCP, proxyPort: 10001, weight: 3}
  - {name: db2/5432, port: 5432, protocol: TCP, proxyPort: 10002, weight: 1}
  - {name: dns/53/udp, port: 53, protocol: UDP, proxyPort: 10003, weight: 1}
  - {name: dns/53, port: 53, protocol: TCP, proxyPort: 10004, weight: 1}
  - {name: api/443, port: 443, protocol: HTTPS, proxyPort: 10005, weight: 1}
  - {name: ext/8443, port: 8443, protocol: TCP, address: "192.0.2.7:8443", weight: 1}
  - {name: named/9000, port: 9000, protocol: GRPC, address: "api.example.com:9000", weight: 1}
`
	sliceEdge = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: edge-out-1, labels: {kubernetes.io/service-name: edge-out}}
addressType: IPv4
ports: [{name: agent, port: 9093, protocol: TCP}]
endpoints:
- {addresses: [10.1.0.1], conditions: {ready: true, serving: true}}
- {addresses: [10.1.0.2], conditions: {ready: true, serving: false}}
- {addresses: [10.1.0.3], conditions: {ready: true, serving: true, terminating: true}}
`
	endpointsEdge = `
apiVersion: gateway.tailscale.com/v1alpha1
kind: TailscaleEndpoints
metadata: {name: edge}
spec:
  tailnet: corp
  proxy: {connectionType: bidirectional}
  endpoints:
  - {name: db, tailscaleFQDN: db.tail1.ts.net, port: 5432, healthCheck: {interval: 7s}}
  - {name: db2, tailscaleIP: 100.64.0.5, port: 5432}
  - {name: api, tailscaleFQDN: api.tail1.ts.net, port: 443, protocol: HTTPS}
  - {name: ext, externalTarget: "192.0.2.7:8443"}
  - {name: named, externalTarget: "api.example.com:9000", protocol: GRPC}
`
)

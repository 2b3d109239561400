//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// hostileNamespace is the namespace of the hostile tenant.
const hostileNamespace = "hostile"

// A hostile tenant writes random objects of all kinds that the extension reads, up to the sizes that
// their schemas allow.
type hostile struct {
	kube client.Client
	rand *rand.Rand

	// certificate is a valid authority, and victims are the names of other tenants.
	certificate string
	victims     []string

	// excluded are kinds of which the tenant writes no objects.
	excluded []string

	// longest is the length of texts in routes.
	longest int

	// objects are the existing objects, and written counts the accepted writes of each kind, refused
	// those that the API server refuses.
	objects          []*unstructured.Unstructured
	written, refused map[string]int
}

func newHostile(kube client.Client, seed uint64, certificate string, victims []string) *hostile {
	return &hostile{kube: kube, rand: rand.New(rand.NewPCG(seed, 0)), longest: 32, certificate: certificate, victims: victims, written: map[string]int{}, refused: map[string]int{}}
}

// makers returns functions that return the spec and further fields of an object of each kind, as YAML.
func (h *hostile) makers() []func() string {
	return []func() string{
		h.service, h.slice, h.configMap, h.secret, h.services, h.endpoints, h.tlsPolicy, h.routePolicy, h.httpRoute, h.grant, h.gateway,
	}
}

// write creates, changes or deletes an object.
func (h *hostile) write(ctx context.Context, t *testing.T) {
	t.Helper()
	if len(h.objects) > 0 && h.rand.IntN(12) == 0 {
		i := h.rand.IntN(len(h.objects))
		if err := h.kube.Delete(ctx, h.objects[i]); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		h.objects = append(h.objects[:i], h.objects[i+1:]...)
		return
	}
	ms := h.makers()
	u := &unstructured.Unstructured{}
	text := ms[h.rand.IntN(len(ms))]()
	if err := yaml.Unmarshal([]byte(text), u); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if slices.Contains(h.excluded, u.GetKind()) {
		return
	}
	u.SetNamespace(hostileNamespace)
	status, hasStatus := u.Object["status"]
	existing := u.DeepCopy()
	err := h.kube.Get(ctx, client.ObjectKeyFromObject(u), existing)
	switch {
	case kerrors.IsNotFound(err):
		err = h.kube.Create(ctx, u)
	case err == nil:
		u.SetResourceVersion(existing.GetResourceVersion())
		err = h.kube.Update(ctx, u)
	}
	if err != nil {
		// Many random objects break a rule of their schema.
		if h.refused[u.GetKind()]++; h.refused[u.GetKind()] == 1 {
			t.Logf("%s: %.300s", u.GetKind(), err)
		}
		return
	}
	h.written[u.GetKind()]++
	h.objects = append(h.objects, u)
	if hasStatus {
		u = u.DeepCopy()
		u.Object["status"] = status
		if h.kube.Status().Update(ctx, u) == nil {
			h.written[u.GetKind()+" status"]++
		}
	}
}

// remove deletes all objects.
func (h *hostile) remove(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, u := range h.objects {
		if err := h.kube.Delete(ctx, u); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	h.objects = nil
}

// name returns one of a few names, so that objects refer to each other.
func (h *hostile) name() string { return fmt.Sprintf("o%d", h.rand.IntN(8)) }

// list returns a random number of items, often the maximum.
func (h *hostile) list(most int, item func(i int) string) string {
	n := most
	if h.rand.IntN(3) > 0 {
		n = 1 + h.rand.IntN(most)
	}
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, item(i))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (h *hostile) one(choices ...string) string { return choices[h.rand.IntN(len(choices))] }

func (h *hostile) head(apiVersion, kind string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", apiVersion, kind, h.name())
}

func (h *hostile) victim() string { return h.one(h.victims...) }

func (h *hostile) host() string {
	return h.one("192.0.2.31", "web."+h.victim()+".svc.cluster.local", "nowhere.invalid", strings.Repeat("a", 63)+".invalid", "192.0.2.99", "2001:db8::1")
}

func (h *hostile) service() string {
	return h.head("v1", "Service") + "spec:\n  " + h.one("selector: {app: x}\n  ", "trafficDistribution: PreferClose\n  ", "clusterIP: None\n  ", "externalIPs: [192.0.2.31]\n  ") +
		"ports: " + h.list(100, func(i int) string { return fmt.Sprintf("{name: p%d, port: %d, protocol: TCP}", i, 80+i) })
}

func (h *hostile) slice() string {
	name := h.name()
	return fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s%d, labels: {kubernetes.io/service-name: %s}}\naddressType: IPv4\n", h.rand.IntN(32), name) +
		"ports: " + h.list(100, func(i int) string {
		return fmt.Sprintf("{name: p%d, port: %d, protocol: TCP}", i, 1+h.rand.IntN(65535))
	}) +
		"\nendpoints: " + h.list(1000, func(i int) string {
		return fmt.Sprintf("{addresses: [198.51.%d.%d], zone: z%d, conditions: {ready: %t}}", i/250, 1+i%250, h.rand.IntN(100), h.rand.IntN(2) == 0)
	})
}

func (h *hostile) configMap() string {
	key := h.one("ca.crt", "tls.crt", "any")
	text := h.certificate
	if h.rand.IntN(2) == 0 {
		text = strings.Repeat(h.certificate, 1+900<<10/(len(h.certificate)+20)/(1+h.rand.IntN(8)))
	}
	return h.head("v1", "ConfigMap") + "data:\n  " + key + ": |\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

func (h *hostile) secret() string {
	return h.head("v1", "Secret") + "type: kubernetes.io/tls\n" + "stringData: {tls.crt: x, tls.key: " + strings.Repeat("k", 1+h.rand.IntN(500<<10)) + "}"
}

func (h *hostile) services() string {
	status := "\nstatus: {discoveredServices: " + h.list(256, func(i int) string { return fmt.Sprintf("{name: d%d}", i) }) + "}"
	return h.head("gateway.tailscale.com/v1alpha1", "TailscaleServices") + "spec:\n  selector: {}\n  vipService: {ports: [" + h.one(`"tcp:80"`, `"tcp:80", "tcp:443"`) + "]}\n  backends: " +
		h.list(64, func(i int) string {
			if h.rand.IntN(2) == 0 {
				return fmt.Sprintf("{name: e%d, kind: External, host: %s, port: %d}", i, `"`+h.host()+`"`, 1+h.rand.IntN(65535))
			}
			return fmt.Sprintf("{name: o%d, port: %d}", i, 80+h.rand.IntN(100))
		}) + status
}

func (h *hostile) endpoints() string {
	status := "\nstatus: {discoveredEndpoints: " + h.list(512, func(i int) string {
		return fmt.Sprintf("{name: d%d, tailscaleFQDN: d%d.x.ts.net, health: %s}", i, i, h.one("Offline", "Healthy"))
	}) + "}"
	return h.head("gateway.tailscale.com/v1alpha1", "TailscaleEndpoints") + "spec:\n  tailnet: corp\n  endpoints: " + h.list(128, func(i int) string {
		if i%2 == 0 {
			return fmt.Sprintf("{name: e%d, port: %d, tailscaleFQDN: d%d.x.ts.net}", i, 1+h.rand.IntN(65535), i)
		}
		return fmt.Sprintf(`{name: e%d, externalTarget: "%s:80"}`, i, h.one("192.0.2.31", "nowhere.invalid"))
	}) + status
}

func (h *hostile) tlsPolicy() string {
	return h.head("gateway.networking.k8s.io/v1", "BackendTLSPolicy") + "spec:\n  targetRefs: " + h.list(16, func(i int) string {
		return fmt.Sprintf("{group: gateway.tailscale.com, kind: %s, name: o%d, sectionName: \"%d\"}", h.one("TailscaleServices", "TailscaleEndpoints"), h.rand.IntN(8), 1+i)
	}) + "\n  validation:\n    hostname: a.example.com\n    caCertificateRefs: " + h.list(8, func(int) string {
		return fmt.Sprintf("{group: \"\", kind: %s, name: %s}", h.one("ConfigMap", "ConfigMap", "Secret"), h.name())
	})
}

func (h *hostile) routePolicy() string {
	return h.head("gateway.tailscale.com/v1alpha1", "TailscaleRoutePolicy") + "spec:\n  targetRefs: " + h.list(16, func(i int) string {
		return fmt.Sprintf("{group: gateway.networking.k8s.io, kind: HTTPRoute, name: o%d}", i)
	}) + "\n  rules: " + h.list(16, func(i int) string {
		return fmt.Sprintf("{name: r%d, matches: %s, actions: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: X-A, value: %s}]}}]}", i, h.list(8, func(m int) string {
			return fmt.Sprintf("{path: {type: %s, value: /%s%d-%d}, headers: %s}", h.one("PathPrefix", "Exact"), strings.Repeat("p", h.rand.IntN(h.longest)), i, m, h.list(8, func(n int) string {
				return fmt.Sprintf("{name: h%d, value: %s}", n, strings.Repeat("v", 1+h.rand.IntN(h.longest)))
			}))
		}), strings.Repeat("x", 1+h.rand.IntN(h.longest)))
	})
}

func (h *hostile) httpRoute() string {
	host := h.one("a.hostile.example.com", "*.hostile.example.com", "b.hostile.example.com", h.victim()+".example.com")
	return h.head("gateway.networking.k8s.io/v1", "HTTPRoute") + "spec:\n  parentRefs: [{name: gw, namespace: default}]\n  hostnames: [\"" + host + "\"]\n  rules: " +
		h.list(16, func(i int) string {
			return fmt.Sprintf("{matches: [{path: {type: PathPrefix, value: /hostile/%d}}], backendRefs: %s}", i, h.list(16, func(int) string {
				return fmt.Sprintf("{group: gateway.tailscale.com, kind: %s, name: %s, port: %d, weight: %d%s}", h.one("TailscaleServices", "TailscaleEndpoints"), h.one(h.name(), "web"), h.one2(80, 443, 1+h.rand.IntN(65535)),
					h.one2(0, 1, 1000000), h.one("", ", namespace: "+h.victim()))
			}))
		})
}

func (h *hostile) one2(choices ...int) int { return choices[h.rand.IntN(len(choices))] }

func (h *hostile) grant() string {
	return h.head("gateway.networking.k8s.io/v1beta1", "ReferenceGrant") + "spec:\n  from: " + h.list(16, func(int) string {
		return fmt.Sprintf("{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: %s}", h.victim())
	}) + "\n  to: [{group: gateway.tailscale.com, kind: TailscaleServices}]"
}

func (h *hostile) gateway() string {
	return h.head("gateway.tailscale.com/v1alpha1", "TailscaleGateway") + "spec:\n  gatewayRef: {name: gw, namespace: default}\n  tailnets: [{name: corp, listeners: [{name: " + h.one("http", "none") + ", identity: Headers}]}]"
}

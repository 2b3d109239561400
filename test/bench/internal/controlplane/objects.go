// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

const (
	tailnet = "bench"
	tag     = "tag:k8s"

	// servedPort is the port of all services.
	servedPort = 80

	// namespaces is the number of namespaces, among which objects are spread.
	namespaces = 10
)

// kinds are the composites that are counted.
var kinds = []string{gatewayv1alpha1.TailscaleServicesKind, gatewayv1alpha1.TailscaleEndpointsKind, gatewayv1alpha1.TailscaleGatewayKind}

// A Size is a number of composites. Each Gateway composes an endpoint and a service more.
type Size struct {
	Services, Endpoints, Gateways int
}

// count returns how many composites of a kind exist.
func (s Size) count(kind string) int {
	switch kind {
	case gatewayv1alpha1.TailscaleServicesKind:
		return s.Services + s.Gateways
	case gatewayv1alpha1.TailscaleEndpointsKind:
		return s.Endpoints + s.Gateways
	}
	return s.Gateways
}

// objects returns all objects. Endpoints come first, because services select them.
func (s Size) objects() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range s.Endpoints {
		out = append(out, endpoints(i))
	}
	for i := range s.Gateways {
		out = append(out, gateway(i)...)
	}
	for i := range s.Services {
		out = append(out, service(i, i%max(s.Endpoints, 1)))
	}
	return out
}

func namespace(i int) string { return fmt.Sprintf("team-%d", i%namespaces) }

// endpoints returns a TailscaleEndpoints with one proxy.
func endpoints(i int) *unstructured.Unstructured {
	name := fmt.Sprintf("proxies-%d", i)
	o := composite(gatewayv1alpha1.TailscaleEndpointsKind, namespace(i), name, map[string]any{
		"tailnet": tailnet,
		"proxy":   map[string]any{"replicas": int64(1), "connectionType": "ingress"},
	})
	o.SetLabels(map[string]string{"app": name})
	return o
}

// service returns a TailscaleServices that proxies of its namespace host.
func service(i, proxies int) *unstructured.Unstructured {
	return composite(gatewayv1alpha1.TailscaleServicesKind, namespace(proxies), fmt.Sprintf("service-%d", i), map[string]any{
		"selector":   map[string]any{"matchLabels": map[string]any{"app": fmt.Sprintf("proxies-%d", proxies)}},
		"vipService": map[string]any{"ports": []any{"tcp:80"}, "tags": []any{tag}},
		"backends":   []any{map[string]any{"name": "web", "port": int64(80)}},
	})
}

// gateway returns a TailscaleGateway, and a Gateway with the Service in front of it.
func gateway(i int) []*unstructured.Unstructured {
	name := fmt.Sprintf("gateway-%d", i)
	front := object("v1", "Service", namespace(i), "envoy-"+name, map[string]any{"spec": map[string]any{
		"ports": []any{map[string]any{"name": "http", "port": int64(80), "protocol": "TCP"}},
	}})
	front.SetLabels(map[string]string{
		meta.LabelManagedBy: meta.ManagedByEnvoyGateway, meta.LabelOwningGatewayName: name, meta.LabelOwningGatewayNamespace: namespace(i),
	})
	return []*unstructured.Unstructured{
		front,
		object("gateway.networking.k8s.io/v1", "Gateway", namespace(i), name, map[string]any{"spec": map[string]any{
			"gatewayClassName": "envoy",
			"listeners":        []any{map[string]any{"name": "http", "port": int64(80), "protocol": "HTTP"}},
		}}),
		composite(gatewayv1alpha1.TailscaleGatewayKind, namespace(i), name, map[string]any{
			"gatewayRef": map[string]any{"name": name}, "routeSharing": "Gateway", "publishBackends": "None",
			"tailnets": []any{map[string]any{
				"name": tailnet, "proxy": map[string]any{"replicas": int64(1)}, "vipService": map[string]any{"tags": []any{tag}},
			}},
		}),
	}
}

func composite(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return object(gatewayv1alpha1.SchemeGroupVersion.String(), kind, namespace, name, map[string]any{"spec": spec})
}

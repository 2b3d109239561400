// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"maps"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Class is the GatewayClass of Gateways, the same as in the lab.
const Class = "envoy"

// envoyVersion is the folder in which Envoy Gateway looks for Envoy, by its configuration. By
// default, Envoy Gateway looks for the newest version on the internet.
const envoyVersion = "1.39.1"

// maxMessageSize is the minimum that an extension server should accept and send.
const maxMessageSize = "256Mi"

// A layout is the folder of a Gateway's files.
type layout struct{ dir string }

func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}

// config returns Envoy Gateway's configuration.
func (l layout) config(o Options) ([]byte, error) {
	c := map[string]any{
		"apiVersion": "gateway.envoyproxy.io/v1alpha1",
		"kind":       "EnvoyGateway",
		"gateway":    map[string]any{"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
		"provider": map[string]any{
			"type": "Custom",
			"custom": map[string]any{
				"resource": l.resource(o),
				"infrastructure": map[string]any{
					"type": "Host",
					"host": map[string]any{
						"configHome": l.path("config"),
						"dataHome":   l.path("data"),
						"stateHome":  l.path("state"),
						"runtimeDir": l.path("run"),
					},
				},
			},
		},
		"logging": map[string]any{"level": map[string]any{"default": "info"}},
		// Envoy Gateway expects pods of Envoy.
		"proxyTopologyInjector": map[string]any{"disabled": true},
		"extensionApis":         map[string]any{"enableBackend": true, "enableEnvoyPatchPolicy": true},
	}
	if len(o.Flags) > 0 {
		c["runtimeFlags"] = map[string]any{"enabled": o.Flags}
	}
	if o.Extension != "" || o.ExtensionAddress.IsValid() {
		all := map[string]any{"includeAll": true}
		// The list for several managers would work too, but Envoy Gateway reads no files of kinds
		// in that list.
		c["extensionManager"] = map[string]any{
			"backendResources": kinds(o.Backends),
			"policyResources":  kinds(o.Policies),
			"hooks": map[string]any{"xdsTranslator": map[string]any{
				"post":        []string{"Translation"},
				"translation": map[string]any{"listener": all, "route": all, "cluster": all, "secret": all},
			}},
			"service":        service(o),
			"maxMessageSize": maxMessageSize,
		}
	}
	b, err := yaml.Marshal(c)
	return b, errors.Wrap(err, "cannot encode configuration")
}

// service returns the address of the extension's hooks, and the certificates of both ends.
func service(o Options) map[string]any {
	out := map[string]any{"unix": map[string]any{"path": o.Extension}}
	if a := o.ExtensionAddress; a.IsValid() {
		out = map[string]any{"ip": map[string]any{"address": a.Addr().String(), "port": a.Port()}}
	}
	if n := o.ExtensionSecret; n.Name != "" {
		ref := map[string]any{"namespace": n.Namespace, "name": n.Name}
		out["tls"] = map[string]any{"certificateRef": ref, "clientCertificateRef": ref}
	}
	return out
}

// resource returns the source of objects.
func (l layout) resource(o Options) map[string]any {
	if o.Kubeconfig != nil {
		return map[string]any{
			"type": "Kubernetes",
			"kubernetes": map[string]any{
				"leaderElection": map[string]any{"disable": true},
				// The default limit of 50 a second takes minutes to write the status of thousands
				// of routes.
				"client": map[string]any{"rateLimit": map[string]any{"qps": 1000, "burst": 1000}},
			},
		}
	}
	return map[string]any{"type": "File", "file": map[string]any{"paths": []string{l.path("manifests")}}}
}

func kinds(all []schema.GroupVersionKind) []map[string]any {
	out := make([]map[string]any, len(all))
	for i, k := range all {
		out[i] = map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
	}
	return out
}

// class returns the GatewayClass, and the configuration of its Envoys.
func class(o Options) ([]byte, error) {
	spec := map[string]any{
		"provider": map[string]any{"type": "Host", "host": map[string]any{"envoyVersion": envoyVersion}},
	}
	if o.Merge {
		spec["mergeGateways"] = true
	}
	if o.Bootstrap != "" {
		spec["bootstrap"] = map[string]any{"type": "Merge", "value": o.Bootstrap}
	}
	maps.Copy(spec, o.Proxy)
	proxy, err := yaml.Marshal(map[string]any{
		"apiVersion": "gateway.envoyproxy.io/v1alpha1",
		"kind":       "EnvoyProxy",
		"metadata":   map[string]any{"name": Class, "namespace": "default"},
		"spec":       spec,
	})
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode EnvoyProxy")
	}
	return append([]byte(`apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata:
  name: `+Class+`
spec:
  controllerName: gateway.envoyproxy.io/gatewayclass-controller
  parametersRef:
    group: gateway.envoyproxy.io
    kind: EnvoyProxy
    name: `+Class+`
    namespace: default
---
`), proxy...), nil
}

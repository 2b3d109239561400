// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

// An Envoy subscribes to all endpoint lists over one stream if its bootstrap has the authority
// tailscale. An Envoy without it refuses clusters that name the authority, so clusters name it
// only for Gateways whose EnvoyProxies are known to have it. In doubt they do not: lists
// without the authority work in every Envoy.

const (
	// authority is the name of the authority in a bootstrap. xds.XDSTPPrefix begins with it.
	authority = "tailscale"

	// ConfigKey is the key of Envoy Gateway's configuration in the ConfigMap of its chart
	// (charts/gateway-helm/templates/envoy-gateway-config.yaml).
	ConfigKey = "envoy-gateway.yaml"

	// MaxBootstrap is the size in bytes of the largest bootstrap that is parsed.
	MaxBootstrap = 256 << 10
)

// An EnvoyProxy is the part of an EnvoyProxy object that decides on the bootstrap.
type EnvoyProxy struct {
	MergeType     *string    `json:"mergeType"`
	MergeGateways *bool      `json:"mergeGateways"`
	Bootstrap     *bootstrap `json:"bootstrap"`
}

// A bootstrap is Envoy Gateway's ProxyBootstrap.
type bootstrap struct {
	Type        string      `json:"type"`
	Value       string      `json:"value"`
	JSONPatches []jsonPatch `json:"jsonPatches"`

	// authority reports whether the bootstrap has the authority tailscale.
	authority bool
}

type jsonPatch struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// A configSource is Envoy's ConfigSource.
type configSource struct {
	Authorities []struct {
		Name string `json:"name"`
	} `json:"authorities"`
}

// ParseEnvoyProxy parses the spec of an EnvoyProxy.
func ParseEnvoyProxy(o *unstructured.Unstructured) (*EnvoyProxy, error) {
	b, err := json.Marshal(o.Object)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode it")
	}
	var doc struct {
		Spec EnvoyProxy `json:"spec"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, errors.Wrap(err, "cannot read spec")
	}
	doc.Spec.reduce()
	return &doc.Spec, nil
}

// reduce replaces the text of the bootstrap by whether it has the authority.
func (p *EnvoyProxy) reduce() {
	if p.Bootstrap != nil {
		p.Bootstrap = &bootstrap{authority: p.Bootstrap.authorized()}
	}
}

// HasAuthority reports whether the bootstrap has the authority tailscale.
func (p *EnvoyProxy) HasAuthority() bool {
	return p != nil && p.Bootstrap != nil && p.Bootstrap.authority
}

// authorized reports whether the bootstrap has the authority. A bootstrap that cannot be
// parsed does not.
func (b *bootstrap) authorized() bool {
	if b.Type == "JSONPatch" {
		return slices.ContainsFunc(b.JSONPatches, jsonPatch.authorized)
	}
	if len(b.Value) > MaxBootstrap {
		return false
	}
	var v struct {
		Sources []configSource `json:"config_sources"`
	}
	return yaml.Unmarshal([]byte(b.Value), &v) == nil && anyAuthorized(v.Sources...)
}

// authorized reports whether the patch adds the authority to config_sources, or replaces
// them by a list with it.
func (p jsonPatch) authorized() bool {
	if p.Op != "add" && p.Op != "replace" || len(p.Value) > MaxBootstrap {
		return false
	}
	if p.Path == "/config_sources" {
		var all []configSource
		return json.Unmarshal(p.Value, &all) == nil && anyAuthorized(all...)
	}
	var source configSource
	return strings.HasPrefix(p.Path, "/config_sources/") && json.Unmarshal(p.Value, &source) == nil && anyAuthorized(source)
}

func anyAuthorized(sources ...configSource) bool {
	for _, s := range sources {
		for _, a := range s.Authorities {
			if a.Name == authority {
				return true
			}
		}
	}
	return false
}

// MergeEnvoyProxies merges two EnvoyProxies as Envoy Gateway does
// (internal/gatewayapi/envoyproxy_merge.go of v1.9.1). If both have a bootstrap, the result
// has that of the override.
func MergeEnvoyProxies(base, override *EnvoyProxy, mergeType string) *EnvoyProxy {
	if base == nil || override == nil || mergeType == mergeReplace {
		if override != nil {
			return override
		}
		return base
	}
	out := *override
	if out.Bootstrap == nil {
		out.Bootstrap = base.Bootstrap
	}
	if out.MergeGateways == nil {
		out.MergeGateways = base.MergeGateways
	}
	return &out
}

// mergeReplace is the mergeType of an EnvoyProxy that names none.
const mergeReplace = "Replace"

// MergeType returns the first mergeType that one of the EnvoyProxies names.
func MergeType(proxies ...*EnvoyProxy) string {
	for _, p := range proxies {
		if p != nil && p.MergeType != nil {
			return *p.MergeType
		}
	}
	return mergeReplace
}

// An EnvoyGatewayConfig is the part of Envoy Gateway's configuration that the extension reads.
type EnvoyGatewayConfig struct {
	// EnvoyProxy is the default EnvoyProxy, or nil.
	EnvoyProxy *EnvoyProxy

	// FailOpen reports that Envoy Gateway publishes Gateways without the extension's changes when
	// the extension returns an error.
	FailOpen bool
}

// An extensionManager is an extension in Envoy Gateway's configuration.
type extensionManager struct {
	FailOpen         bool           `json:"failOpen"`
	BackendResources []groupVersion `json:"backendResources"`
}

type groupVersion struct {
	Group string `json:"group"`
}

// failsOpen reports whether an extension with backends of our kinds fails open.
func (m extensionManager) failsOpen() bool {
	return m.FailOpen && slices.ContainsFunc(m.BackendResources, func(g groupVersion) bool { return g.Group == gatewayv1alpha1.Group })
}

// ParseEnvoyGatewayConfig parses Envoy Gateway's configuration. That of a nil ConfigMap, which does not
// exist, has the defaults.
func ParseEnvoyGatewayConfig(o *corev1.ConfigMap) (EnvoyGatewayConfig, error) {
	if o == nil {
		return EnvoyGatewayConfig{}, nil
	}
	var c struct {
		EnvoyProxy        *EnvoyProxy        `json:"envoyProxy"`
		ExtensionManager  extensionManager   `json:"extensionManager"`
		ExtensionManagers []extensionManager `json:"extensionManagers"`
	}
	if err := yaml.Unmarshal([]byte(o.Data[ConfigKey]), &c); err != nil {
		return EnvoyGatewayConfig{}, err
	}
	if c.EnvoyProxy != nil {
		c.EnvoyProxy.reduce()
	}
	failOpen := slices.ContainsFunc(append(c.ExtensionManagers, c.ExtensionManager), extensionManager.failsOpen)
	return EnvoyGatewayConfig{EnvoyProxy: c.EnvoyProxy, FailOpen: failOpen}, nil
}

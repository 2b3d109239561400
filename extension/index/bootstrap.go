// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// An Envoy subscribes to all endpoint lists over one stream if its bootstrap has the
// authority tailscale. One without it refuses clusters that name the authority, so clusters
// do so only for Gateways whose EnvoyProxies are known to have it. Whatever is in doubt counts
// as without: the other way works in every Envoy.

const (
	kindEnvoyProxy   = "EnvoyProxy"
	kindGatewayClass = "GatewayClass"

	// authority is its name in a bootstrap. xds.XDSTPPrefix begins with it.
	authority = "tailscale"

	// configKey is the key of Envoy Gateway's own configuration in the ConfigMap that its
	// chart makes (charts/gateway-helm/templates/envoy-gateway-config.yaml).
	configKey = "envoy-gateway.yaml"

	// maxBootstrap is the size of the largest bootstrap that is read, in bytes.
	maxBootstrap = 256 << 10
)

// kindBootstrap is the kind of what a Gateway's digest has for its bootstrap.
const kindBootstrap RouteKind = "bootstrap"

// BootstrapKinds returns the kinds that decide on the bootstrap of a Gateway's Envoys, beside
// those of Kinds.
func BootstrapKinds() map[string]client.Object {
	p := &unstructured.Unstructured{}
	p.SetGroupVersionKind(schema.GroupVersionKind{Group: groupEnvoyGateway, Version: "v1alpha1", Kind: kindEnvoyProxy})
	return map[string]client.Object{kindGatewayClass: &gwapiv1.GatewayClass{}, kindEnvoyProxy: p}
}

// An envoyProxy is what an EnvoyProxy has of a bootstrap.
type envoyProxy struct {
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

// parseEnvoyProxy reads the spec of an EnvoyProxy.
func parseEnvoyProxy(o *unstructured.Unstructured) (*envoyProxy, error) {
	b, err := json.Marshal(o.Object)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode it")
	}
	var of struct {
		Spec envoyProxy `json:"spec"`
	}
	if err := json.Unmarshal(b, &of); err != nil {
		return nil, errors.Wrap(err, "cannot read spec")
	}
	of.Spec.judge()
	return &of.Spec, nil
}

// judge replaces the text of the bootstrap by what counts of it.
func (p *envoyProxy) judge() {
	if p.Bootstrap != nil {
		p.Bootstrap = &bootstrap{authority: p.Bootstrap.judge()}
	}
}

// hasAuthority reports whether the bootstrap of the Envoys has the authority tailscale.
func (p *envoyProxy) hasAuthority() bool {
	return p != nil && p.Bootstrap != nil && p.Bootstrap.authority
}

// judge reports whether the bootstrap has the authority. One that cannot be read does not.
func (b *bootstrap) judge() bool {
	if b.Type == "JSONPatch" {
		return slices.ContainsFunc(b.JSONPatches, jsonPatch.judge)
	}
	if len(b.Value) > maxBootstrap {
		return false
	}
	var v struct {
		Sources []configSource `json:"config_sources"`
	}
	return yaml.Unmarshal([]byte(b.Value), &v) == nil && authorized(v.Sources...)
}

// judge reports whether the patch adds the authority to config_sources, or sets them.
func (p jsonPatch) judge() bool {
	if p.Op != "add" && p.Op != "replace" || len(p.Value) > maxBootstrap {
		return false
	}
	if p.Path == "/config_sources" {
		var all []configSource
		return json.Unmarshal(p.Value, &all) == nil && authorized(all...)
	}
	var one configSource
	return strings.HasPrefix(p.Path, "/config_sources/") && json.Unmarshal(p.Value, &one) == nil && authorized(one)
}

func authorized(sources ...configSource) bool {
	for _, s := range sources {
		for _, a := range s.Authorities {
			if a.Name == authority {
				return true
			}
		}
	}
	return false
}

// mergeProxies as Envoy Gateway does (internal/gatewayapi/envoyproxy_merge.go of v1.9.1).
// A bootstrap of both is taken for the override's.
func mergeProxies(base, override *envoyProxy, mergeType string) *envoyProxy {
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

// mergeReplace is the mergeType of EnvoyProxies that name none.
const mergeReplace = "Replace"

func mergeTypeOf(proxies ...*envoyProxy) string {
	for _, p := range proxies {
		if p != nil && p.MergeType != nil {
			return *p.MergeType
		}
	}
	return mergeReplace
}

// A gatewayParameters is where a Gateway has its EnvoyProxies from.
type gatewayParameters struct {
	class string
	proxy *types.NamespacedName
}

// putParameters keeps what a Gateway names.
func (w *world) putParameters(o *gwapiv1.Gateway, n types.NamespacedName, gone bool, d *dirty) {
	d.bootstraps[n] = struct{}{}
	p := gatewayParameters{class: string(o.Spec.GatewayClassName)}
	if i := o.Spec.Infrastructure; i != nil && i.ParametersRef != nil {
		// A reference to another kind stands for an EnvoyProxy that is not there: Envoy
		// Gateway takes neither.
		p.proxy = &types.NamespacedName{Namespace: n.Namespace}
		if i.ParametersRef.Group == groupEnvoyGateway && i.ParametersRef.Kind == kindEnvoyProxy {
			p.proxy.Name = i.ParametersRef.Name
		}
	}
	put(w.parameters, n, p, gone)
}

// putClass keeps the EnvoyProxy of a GatewayClass.
func (w *world) putClass(o *gwapiv1.GatewayClass, gone bool, d *dirty) {
	delete(w.classes, o.Name)
	if r := o.Spec.ParametersRef; !gone && r != nil {
		n := types.NamespacedName{}
		if r.Group == groupEnvoyGateway && r.Kind == kindEnvoyProxy {
			n = types.NamespacedName{Namespace: string(ptr.Deref(r.Namespace, "")), Name: r.Name}
		}
		w.classes[o.Name] = n
	}
	w.rebootstrap(d)
}

// putEnvoyProxy keeps what an EnvoyProxy has of a bootstrap.
func (w *world) putEnvoyProxy(o *unstructured.Unstructured, n types.NamespacedName, gone bool, d *dirty) error {
	delete(w.proxies, n)
	w.rebootstrap(d)
	if gone {
		return nil
	}
	p, err := parseEnvoyProxy(o)
	if err != nil {
		return errors.Wrapf(err, "cannot read %s %s", kindEnvoyProxy, n)
	}
	w.proxies[n] = p
	return nil
}

// putConfig keeps the EnvoyProxy that is Envoy Gateway's default.
func (w *world) putConfig(o *corev1.ConfigMap, gone bool, d *dirty) error {
	w.defaultProxy = nil
	w.rebootstrap(d)
	if gone {
		return nil
	}
	p, err := parseConfig(o)
	if err != nil {
		return errors.Wrapf(err, "cannot read %s of ConfigMap %s/%s", configKey, o.Namespace, o.Name)
	}
	w.defaultProxy = p
	return nil
}

// parseConfig reads the default EnvoyProxy of Envoy Gateway's configuration. Nil is none.
func parseConfig(o *corev1.ConfigMap) (*envoyProxy, error) {
	var c struct {
		EnvoyProxy *envoyProxy `json:"envoyProxy"`
	}
	if err := yaml.Unmarshal([]byte(o.Data[configKey]), &c); err != nil {
		return nil, err
	}
	if c.EnvoyProxy != nil {
		c.EnvoyProxy.judge()
	}
	return c.EnvoyProxy, nil
}

// rebootstrap has all Gateways looked at again: those objects are few, and change rarely.
func (w *world) rebootstrap(d *dirty) {
	for n := range w.parameters {
		d.bootstraps[n] = struct{}{}
	}
}

// bootstrapped reports whether the bootstrap of a Gateway's Envoys has the authority.
func (w *world) bootstrapped(gateway types.NamespacedName) bool {
	p, ok := w.parameters[gateway]
	if !ok {
		return false
	}
	var ofClass, ofGateway *envoyProxy
	if n, ok := w.classes[p.class]; ok {
		if ofClass = w.proxies[n]; ofClass == nil {
			return false
		}
	}
	if merged := mergeProxies(w.defaultProxy, ofClass, mergeTypeOf(ofClass)); p.proxy != nil && (merged == nil || !ptr.Deref(merged.MergeGateways, false)) {
		if ofGateway = w.proxies[*p.proxy]; ofGateway == nil {
			return false
		}
	}
	specific := mergeProxies(ofClass, ofGateway, mergeTypeOf(ofGateway))
	all := mergeProxies(w.defaultProxy, specific, mergeTypeOf(ofClass, ofGateway))
	return all.hasAuthority()
}

// EnvoyGatewayConfig names the ConfigMap of Envoy Gateway's own configuration, before any
// object is applied. Its default EnvoyProxy counts from then on.
func (s *Store) EnvoyGatewayConfig(n types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.config = n
}

// advanceBootstrap takes over what is known of the bootstrap of a Gateway's Envoys.
func (s *Store) advanceBootstrap(c *change, gateway types.NamespacedName) {
	old, now := c.next.Bootstraps.Get(gateway), s.world.bootstrapped(gateway)
	if old == now {
		return
	}
	c.digest(bootstrapSum(gateway, old), bootstrapSum(gateway, now))
	c.bootstraps = append(c.bootstraps, gateway)
	c.next.Bootstraps.Put(c.next, gateway, now, !now)
}

func bootstrapKey(gateway types.NamespacedName) RouteKey {
	return RouteKey{Kind: kindBootstrap, NamespacedName: gateway}
}

// bootstrapSum is what a bootstrap is in a digest.
func bootstrapSum(gateway types.NamespacedName, has bool) any {
	if !has {
		return nil
	}
	return struct{ Bootstrapped types.NamespacedName }{gateway}
}

// bootstrapPart is what it adds to the digest of the Gateway.
func bootstrapPart(c *change, gateway types.NamespacedName) part {
	if !c.next.Bootstraps.Get(gateway) {
		return part{}
	}
	return part{gateways: []types.NamespacedName{gateway}, sum: sum(bootstrapSum(gateway, true))}
}

// Bootstrapped reports whether the bootstrap of a Gateway's Envoys is known to have the
// authority tailscale.
func (s *Snapshot) Bootstrapped(gateway types.NamespacedName) bool {
	return s.tables.Bootstraps.Get(gateway)
}

// stripEnvoyProxy of all but what decides on a bootstrap.
func stripEnvoyProxy(spec map[string]any) {
	maps.DeleteFunc(spec, func(k string, _ any) bool { return k != "mergeType" && k != "mergeGateways" && k != "bootstrap" })
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// kindBootstrap is the kind of what a Gateway's digest has for its bootstrap.
const kindBootstrap ir.RouteKind = "bootstrap"

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
		if i.ParametersRef.Group == parse.GroupEnvoyGateway && i.ParametersRef.Kind == parse.KindEnvoyProxy {
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
		if r.Group == parse.GroupEnvoyGateway && r.Kind == parse.KindEnvoyProxy {
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
	p, err := parse.ParseEnvoyProxy(o)
	if err != nil {
		return errors.Wrapf(err, "cannot read %s %s", parse.KindEnvoyProxy, n)
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
	p, err := parse.ParseEnvoyGatewayConfig(o)
	if err != nil {
		return errors.Wrapf(err, "cannot read %s of ConfigMap %s/%s", parse.ConfigKey, o.Namespace, o.Name)
	}
	w.defaultProxy = p
	return nil
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
	var ofClass, ofGateway *parse.EnvoyProxy
	if n, ok := w.classes[p.class]; ok {
		if ofClass = w.proxies[n]; ofClass == nil {
			return false
		}
	}
	if merged := parse.MergeEnvoyProxies(w.defaultProxy, ofClass, parse.MergeType(ofClass)); p.proxy != nil && (merged == nil || !ptr.Deref(merged.MergeGateways, false)) {
		if ofGateway = w.proxies[*p.proxy]; ofGateway == nil {
			return false
		}
	}
	specific := parse.MergeEnvoyProxies(ofClass, ofGateway, parse.MergeType(ofGateway))
	all := parse.MergeEnvoyProxies(w.defaultProxy, specific, parse.MergeType(ofClass, ofGateway))
	return all.HasAuthority()
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

func bootstrapKey(gateway types.NamespacedName) ir.RouteKey {
	return ir.RouteKey{Kind: kindBootstrap, NamespacedName: gateway}
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
	return part{gateways: []types.NamespacedName{gateway}, sum: ir.Sum(bootstrapSum(gateway, true))}
}

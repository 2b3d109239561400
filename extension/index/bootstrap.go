// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// A gatewayParameters names the sources of a Gateway's EnvoyProxies.
type gatewayParameters struct {
	class string
	proxy *types.NamespacedName
}

// bootstrapObjects are the objects that decide on the bootstraps of Envoys.
type bootstrapObjects struct {
	// parameters are the sources for Gateways. The other maps are the EnvoyProxies of
	// GatewayClasses, and all EnvoyProxies.
	parameters map[types.NamespacedName]gatewayParameters
	classes    map[string]types.NamespacedName
	proxies    map[types.NamespacedName]*parse.EnvoyProxy

	// config is the name of the ConfigMap of Envoy Gateway's configuration, which has the default
	// EnvoyProxy.
	config types.NamespacedName
}

func newBootstrapObjects() bootstrapObjects {
	return bootstrapObjects{
		parameters: map[types.NamespacedName]gatewayParameters{},
		classes:    map[string]types.NamespacedName{},
		proxies:    map[types.NamespacedName]*parse.EnvoyProxy{},
	}
}

// putBootstrap stores an object that decides on the bootstrap of a Gateway's Envoys.
func putBootstrap(all *objects, change *input, p *pending) (bool, error) {
	switch o := change.Object.(type) {
	case *gwapiv1.Gateway:
		putParameters(all, o, change.name, change.Deleted, p)
	case *gwapiv1.GatewayClass:
		putClass(all, o, change.Deleted, p)
	case *unstructured.Unstructured:
		if gk := o.GroupVersionKind().GroupKind(); gk.Group != parse.GroupEnvoyGateway || gk.Kind != parse.KindEnvoyProxy {
			return false, nil
		}
		return true, putEnvoyProxy(all, o, change.name, change.Deleted, p)
	default:
		return false, nil
	}
	return true, nil
}

// putParameters stores the class and the EnvoyProxy that a Gateway names.
func putParameters(all *objects, o *gwapiv1.Gateway, n types.NamespacedName, deleted bool, d *pending) {
	d.markName(bootstrapSection, n)
	p := gatewayParameters{class: string(o.Spec.GatewayClassName)}
	if i := o.Spec.Infrastructure; i != nil && i.ParametersRef != nil {
		// A reference to another kind stands for an EnvoyProxy that does not exist: Envoy
		// Gateway accepts neither.
		p.proxy = &types.NamespacedName{Namespace: n.Namespace}
		if i.ParametersRef.Group == parse.GroupEnvoyGateway && i.ParametersRef.Kind == parse.KindEnvoyProxy {
			p.proxy.Name = i.ParametersRef.Name
		}
	}
	put(all.parameters, n, p, deleted)
}

// putClass stores the EnvoyProxy of a GatewayClass.
func putClass(all *objects, o *gwapiv1.GatewayClass, deleted bool, p *pending) {
	delete(all.classes, o.Name)
	if r := o.Spec.ParametersRef; !deleted && r != nil {
		n := types.NamespacedName{}
		if r.Group == parse.GroupEnvoyGateway && r.Kind == parse.KindEnvoyProxy {
			n = types.NamespacedName{Namespace: string(ptr.Deref(r.Namespace, "")), Name: r.Name}
		}
		all.classes[o.Name] = n
	}
	markBootstraps(all, p)
}

// putEnvoyProxy stores the part of an EnvoyProxy that decides on a bootstrap.
func putEnvoyProxy(all *objects, o *unstructured.Unstructured, n types.NamespacedName, deleted bool, p *pending) error {
	delete(all.proxies, n)
	markBootstraps(all, p)
	if deleted {
		return nil
	}
	proxy, err := parse.ParseEnvoyProxy(o)
	if err != nil {
		return errors.Wrapf(err, "cannot read %s %s", parse.KindEnvoyProxy, n)
	}
	all.proxies[n] = proxy
	return nil
}

// markBootstraps marks all Gateways. The objects that require it are few, and change rarely.
func markBootstraps(all *objects, p *pending) {
	for n := range all.parameters {
		p.markName(bootstrapSection, n)
	}
}

// bootstrapOf returns what is known about a Gateway's Envoys.
func (all *objects) bootstrapOf(gateway types.NamespacedName) ir.Bootstrap {
	p, ok := all.parameters[gateway]
	config, configured := all.envoyGatewayConfig()
	if !ok || !configured {
		return ir.Bootstrap{}
	}
	var ofClass, ofGateway *parse.EnvoyProxy
	if n, ok := all.classes[p.class]; ok {
		if ofClass = all.proxies[n]; ofClass == nil {
			return ir.Bootstrap{}
		}
	}
	merged := parse.MergeEnvoyProxies(config.EnvoyProxy, ofClass, parse.MergeType(ofClass))
	merges := merged != nil && ptr.Deref(merged.MergeGateways, false)
	if p.proxy != nil && !merges {
		if ofGateway = all.proxies[*p.proxy]; ofGateway == nil {
			return ir.Bootstrap{}
		}
	}
	specific := parse.MergeEnvoyProxies(ofClass, ofGateway, parse.MergeType(ofGateway))
	merged = parse.MergeEnvoyProxies(config.EnvoyProxy, specific, parse.MergeType(ofClass, ofGateway))
	return ir.Bootstrap{Authority: merged.HasAuthority(), Merges: merges}
}

// recomputeBootstraps updates what is known about the Envoys of the marked Gateways.
func recomputeBootstraps(s *Store, e *edit) {
	for c := range e.marked(bootstrapSection) {
		gateway := c.NamespacedName
		old, current := e.next.Bootstraps.Get(gateway), s.objects.bootstrapOf(gateway)
		if old == current {
			continue
		}
		e.digest(c, bootstrapSum(gateway, old), bootstrapSum(gateway, current))
		e.next.Bootstraps.Put(e.next, gateway, current, current == ir.Bootstrap{})
	}
}

// bootstrapSum returns the part of a bootstrap in digests.
func bootstrapSum(gateway types.NamespacedName, b ir.Bootstrap) any {
	if b == (ir.Bootstrap{}) {
		return nil
	}
	return struct {
		Bootstrapped types.NamespacedName
		Bootstrap    ir.Bootstrap
	}{gateway, b}
}

// digestBootstrap returns the part of the bootstrap of a Gateway's Envoys.
func digestBootstrap(_ *Store, e *edit, c entry) digestPart {
	return digestPartOf(c.NamespacedName, bootstrapSum(c.NamespacedName, e.next.Bootstraps.Get(c.NamespacedName)))
}

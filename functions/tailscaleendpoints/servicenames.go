// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// serviceOf is the resource name of an endpoint's Service.
func serviceOf(endpoint string) string { return nameTargetService + "-" + endpoint }

// nameServices finds out what the Services of endpoints are called: NAME-ENDPOINT, unless
// another Service of the namespace is. One that there is keeps its name. It returns false
// while Crossplane has not looked for others.
func (e *endpoints) nameServices(r *compose.Run) (bool, error) {
	e.services = map[string]string{}
	if !e.egress.wants {
		return true, nil
	}
	all := true
	for _, endpoint := range e.proxiedEndpoints() {
		had := &corev1.Service{}
		ok, err := r.Observed(serviceOf(endpoint), had)
		if err != nil {
			return false, err
		}
		if ok {
			e.services[endpoint] = had.GetName()
			continue
		}
		name := names.EndpointService(e.owner.Name, endpoint)
		need := compose.Requirement{Key: serviceOf(endpoint), APIVersion: "v1", Kind: "Service", Namespace: e.owner.Namespace, Name: name}
		r.Require(need)
		found, looked, err := compose.Required[corev1.Service](r, need)
		if err != nil {
			return false, err
		}
		all = all && looked
		if len(found) > 0 && !e.ownsService(found[0], endpoint) {
			name = names.OtherEndpointService(e.owner.Name, endpoint)
		}
		e.services[endpoint] = name
	}
	return all, nil
}

// ownsService reports whether a Service is an endpoint's: of this object, or of one of its
// name before it.
func (e *endpoints) ownsService(s corev1.Service, endpoint string) bool {
	return s.Labels[meta.LabelEndpoints] == e.owner.Name && s.Labels[meta.LabelEndpoint] == endpoint
}

// proxiedEndpoints are the names of the endpoints that may get a Service.
func (e *endpoints) proxiedEndpoints() []string {
	seen := map[string]bool{}
	for _, ep := range e.xr.Spec.Endpoints {
		for _, t := range e.endpointTargets(ep, e.xr.Spec.Ports) {
			seen[ep.Name] = seen[ep.Name] || t.proxied()
		}
	}
	for _, ep := range e.discoveredEndpoints() {
		seen[ep.Name] = true
	}
	var out []string
	for _, name := range sortedKeys(seen) {
		if seen[name] {
			out = append(out, name)
		}
	}
	return out
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/limits"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
)

// configMapObjects are the states of ConfigMaps, and the shares of BackendTLSPolicies in the ConfigMaps
// that are watched.
type configMapObjects struct {
	configMaps      map[types.NamespacedName]*parse.ConfigMap
	configMapShares *objectShares

	// configMapsChanged receives a value when other ConfigMaps are admitted.
	configMapsChanged chan struct{}
}

func newConfigMapObjects() configMapObjects {
	c := make(chan struct{}, 1)
	return configMapObjects{
		configMaps: map[types.NamespacedName]*parse.ConfigMap{}, configMapsChanged: c,
		configMapShares: newObjectShares(limits.NamespaceConfigMaps, limits.ConfigMaps, c),
	}
}

// namesConfigMap reports whether a policy's reference is to a ConfigMap.
func namesConfigMap(r gwapiv1.LocalObjectReference) bool {
	return r.Group == "" && r.Kind == parse.KindConfigMap
}

// wantConfigMaps replaces the ConfigMaps that a BackendTLSPolicy names. Whether routes name its targets
// does not matter: the certificates are known when the first route does.
func wantConfigMaps(all *objects, o *gwapiv1.BackendTLSPolicy, n types.NamespacedName, applies bool) {
	w := objectWant{}
	if applies {
		w.created = o.CreationTimestamp.Time
		for _, r := range o.Spec.Validation.CACertificateRefs {
			if configMap := ir.Sibling(n, string(r.Name)); namesConfigMap(r) && !slices.Contains(w.names, configMap) {
				w.names = append(w.names, configMap)
			}
		}
	}
	all.configMapShares.set(entry{section: targetSection, NamespacedName: n}, w)
}

// settleConfigMaps decides which ConfigMaps are watched, and marks the targets of the BackendTLSPolicies
// for which that changes something.
func settleConfigMaps(all *objects, p *pending) {
	for c := range all.configMapShares.settle() {
		for _, k := range tlsRefs {
			for _, target := range all.groups[grouped{kind: k, NamespacedName: c.NamespacedName}] {
				p.ref(k, target)
			}
		}
	}
}

// ConfigMaps returns the ConfigMaps with certificates of authorities that BackendTLSPolicies name, and
// the one with Envoy Gateway's configuration, sorted. Only these are watched, each by name.
func (s *Store) ConfigMaps() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := admitted(s.objects.configMapShares)
	if n := s.objects.config; n != (types.NamespacedName{}) {
		out = append(out, n)
	}
	slices.SortFunc(out, ir.CompareNames)
	return slices.Compact(out)
}

// ConfigMapsChanged returns a channel that receives a value when ConfigMaps may have changed. It is for
// one reader.
func (s *Store) ConfigMapsChanged() <-chan struct{} { return s.objects.configMapsChanged }

// ReadConfigMap returns the state of a ConfigMap. A nil ConfigMap does not exist. If Envoy Gateway's
// configuration cannot be parsed, the state has the defaults.
func (s *Store) ReadConfigMap(n types.NamespacedName, o *corev1.ConfigMap) (parse.ConfigMap, error) {
	c := parse.ConfigMap{Authorities: backendtls.ParseAuthorities(o)}
	s.mu.Lock()
	config := s.objects.config
	s.mu.Unlock()
	if n != config {
		return c, nil
	}
	read, err := parse.ParseEnvoyGatewayConfig(o)
	if err != nil {
		s.metrics.unusable.Inc()
	}
	c.Config = &read
	return c, errors.Wrapf(err, "cannot read %s of ConfigMap %s", parse.ConfigKey, n)
}

// envoyGatewayConfig returns Envoy Gateway's configuration, and false if it has a name and is not
// known.
func (all *objects) envoyGatewayConfig() (parse.EnvoyGatewayConfig, bool) {
	if all.config == (types.NamespacedName{}) {
		return parse.EnvoyGatewayConfig{}, true
	}
	c := all.configMaps[all.config]
	if c == nil || c.Config == nil {
		return parse.EnvoyGatewayConfig{}, false
	}
	return *c.Config, true
}

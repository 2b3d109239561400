// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// SetHost sets the addresses of a DNS name. An empty list means that the name has none, or that
// they cannot be found.
func (s *Store) SetHost(host string, addresses []string) {
	addresses = slices.Compact(slices.Sorted(slices.Values(addresses)))
	s.changeHost(host, func(h string) { s.objects.hosts[h] = addresses })
}

// ForgetHost removes a DNS name that no target needs any more.
func (s *Store) ForgetHost(host string) {
	s.changeHost(host, func(h string) { delete(s.objects.hosts, h) })
}

func (s *Store) changeHost(host string, change func(host string)) {
	host = ir.CanonicalHost(host)
	s.update(func(p *pending) {
		change(host)
		p.ref(refHost, types.NamespacedName{Name: host})
	})
}

// SetHealth sets the placements of targets, and makes one Snapshot of all changes. It keeps
// the placements of other targets, and ignores targets that no route names.
func (s *Store) SetHealth(placements map[ir.TargetKey]ir.Placement) {
	s.update(func(p *pending) {
		for k, placement := range placements {
			if len(s.namedBy[dependent{target: k}]) == 0 || s.objects.placements[k].Equal(placement) {
				continue
			}
			put(s.objects.placements, k, placement, placement.IsZero())
			p.targets[k] = struct{}{}
		}
	})
}

// SetConfigMap sets the state of a ConfigMap. Nil means that the state is not known.
func (s *Store) SetConfigMap(n types.NamespacedName, c *parse.ConfigMap) {
	s.update(func(p *pending) {
		if reflect.DeepEqual(s.objects.configMaps[n], c) {
			return
		}
		put(s.objects.configMaps, n, c, c == nil)
		p.ref(refConfigMap, n)
		if n == s.objects.config {
			markBootstraps(s.objects, p)
			servePolicies(s.objects, p)
		}
	})
}

// SetSecret sets the state of a Secret. Nil means that the state is not known.
func (s *Store) SetSecret(n types.NamespacedName, h *ir.CertificateSecret) {
	s.update(func(p *pending) {
		if reflect.DeepEqual(s.objects.clientSecrets[n], h) {
			return
		}
		put(s.objects.clientSecrets, n, h, h == nil)
		p.markName(secretSection, n)
		for reader := range s.readers[n] {
			p.mark(reader)
		}
	})
}

// SetDialPolicy sets which hosts Envoys may connect to without a proxy. It must be called
// before the first change is applied.
func (s *Store) SetDialPolicy(d DialPolicy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects.dialPolicy = d
}

// EnvoyGatewayConfig sets the name of the ConfigMap with Envoy Gateway's configuration,
// which has the default EnvoyProxy. It is one of ConfigMaps, beside the shares of policies. The method
// must be called before the first change is applied.
func (s *Store) EnvoyGatewayConfig(n types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects.config = n
}

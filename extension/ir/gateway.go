// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"k8s.io/apimachinery/pkg/types"
)

// A Gateway is the part of a Gateway that the extension needs. It alone changes no
// configuration of Envoy.
type Gateway struct {
	Class string

	// Listeners in order, for people: NAME: PROTOCOL PORT, and the hostname of a listener
	// that has one.
	Listeners []string

	// Sections are the names of the listeners.
	Sections []string

	// HTTPPorts are the ports of HTTP listeners without TLS, by the listeners' names.
	HTTPPorts map[string]int32

	// AdmitsOthers reports whether routes of other namespaces may attach: a listener allows some, or
	// ListenerSets may, which have their own rules.
	AdmitsOthers bool
}

// Gateway returns a Gateway, or nil if it is not known.
func (s *Snapshot) Gateway(n types.NamespacedName) *Gateway { return s.tables.Gateways.Get(n) }

// An IdentityListener is a listener of a Gateway to which the tailnet's proxies send the
// client's identity in headers.
type IdentityListener struct {
	Name string
	Port int32
}

// HasIdentityListeners reports whether any Gateway has an IdentityListener.
func (s *Snapshot) HasIdentityListeners() bool { return s.tables.IdentityListeners.Len() > 0 }

// IdentityListeners returns the identity listeners of a Gateway, by name. It also reports whether a
// TailscaleGateway asks for identity listeners, even if the Gateway has none of them.
func (s *Snapshot) IdentityListeners(gateway types.NamespacedName) ([]IdentityListener, bool) {
	return s.tables.IdentityListeners.Lookup(gateway)
}

// A Bootstrap is what a Gateway's EnvoyProxies say about its Envoys.
type Bootstrap struct {
	// Authority reports that the bootstrap is known to have the authority tailscale.
	Authority bool

	// Merges reports that Envoys serve all Gateways of the class.
	Merges bool
}

// HasAuthority reports whether the bootstrap of a Gateway's Envoys is known to have the
// authority tailscale.
func (s *Snapshot) HasAuthority(gateway types.NamespacedName) bool {
	return s.tables.Bootstraps.Get(gateway).Authority
}

// Merges reports whether the Envoys of a Gateway are known to serve all Gateways of its class.
func (s *Snapshot) Merges(gateway types.NamespacedName) bool {
	return s.tables.Bootstraps.Get(gateway).Merges
}

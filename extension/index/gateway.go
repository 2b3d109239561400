// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// An AboutGateway is what people want to know of a Gateway, and what others that concern
// it rest on. Nothing that Envoy gets is made of it alone.
type AboutGateway struct {
	Class string

	// Listeners in their order: NAME: PROTOCOL PORT, with a hostname if it has one.
	Listeners []string

	// Sections are the names of the listeners.
	Sections []string

	// Plain are the ports of those of HTTP without TLS, by name.
	Plain map[string]int32
}

func aboutGateway(o *gwapiv1.Gateway) *AboutGateway {
	out := &AboutGateway{Class: string(o.Spec.GatewayClassName), Plain: plainPorts(o)}
	for _, l := range o.Spec.Listeners {
		s := fmt.Sprintf("%s: %s %d", l.Name, l.Protocol, l.Port)
		if l.Hostname != nil {
			s += " " + string(*l.Hostname)
		}
		out.Listeners = append(out.Listeners, s)
		out.Sections = append(out.Sections, string(l.Name))
	}
	return out
}

// Gateway returns nil for one that is not known.
func (s *Snapshot) Gateway(n types.NamespacedName) *AboutGateway { return s.tables.Gateways.Get(n) }

// advanceAbout takes over what is known of a Gateway.
func (s *Store) advanceAbout(c *change, n types.NamespacedName) {
	now := s.world.abouts[n]
	if reflect.DeepEqual(c.next.Gateways.Get(n), now) {
		return
	}
	c.next.Gateways.Put(c.next, n, now, now == nil)
}

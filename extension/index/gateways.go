// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// gatewayObjects are the Gateways. Other sections read them too.
type gatewayObjects struct {
	gatewayInfo map[types.NamespacedName]*ir.Gateway
}

func newGatewayObjects() gatewayObjects {
	return gatewayObjects{gatewayInfo: map[types.NamespacedName]*ir.Gateway{}}
}

// putGateway stores a Gateway.
func (all *objects) putGateway(in *input, p *pending) (bool, error) {
	o, ok := in.Object.(*gwapiv1.Gateway)
	if !ok {
		return false, nil
	}
	put(all.gatewayInfo, in.name, parse.ParseGateway(o), in.Gone)
	p.markName(gatewaySection, in.name)
	return true, nil
}

// recomputeGateways updates the marked Gateways.
func (s *Store) recomputeGateways(e *edit) {
	for c := range e.marked(gatewaySection) {
		now := s.objects.gatewayInfo[c.NamespacedName]
		if !reflect.DeepEqual(e.next.Gateways.Get(c.NamespacedName), now) {
			e.next.Gateways.Put(e.next, c.NamespacedName, now, now == nil)
		}
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// ParseGateway returns the part of a Gateway that the extension needs.
func ParseGateway(o *gwapiv1.Gateway) *ir.Gateway {
	out := &ir.Gateway{Class: string(o.Spec.GatewayClassName), HTTPPorts: plainPorts(o)}
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

// plainPorts returns the ports of a Gateway's HTTP listeners by the listeners' names.
func plainPorts(o *gwapiv1.Gateway) map[string]int32 {
	out := map[string]int32{}
	for _, l := range o.Spec.Listeners {
		if l.Protocol == gwapiv1.HTTPProtocolType {
			out[string(l.Name)] = l.Port
		}
	}
	return out
}

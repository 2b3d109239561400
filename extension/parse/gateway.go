// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"fmt"

	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// ParseGateway returns the part of a Gateway that the extension needs.
func ParseGateway(o *gwapiv1.Gateway) *ir.Gateway {
	out := &ir.Gateway{Class: string(o.Spec.GatewayClassName), HTTPPorts: plainPorts(o), AdmitsOthers: allowsListenerSets(o)}
	for _, l := range o.Spec.Listeners {
		s := fmt.Sprintf("%s: %s %d", l.Name, l.Protocol, l.Port)
		if l.Hostname != nil {
			s += " " + string(*l.Hostname)
		}
		out.Listeners = append(out.Listeners, s)
		out.Sections = append(out.Sections, string(l.Name))
		out.AdmitsOthers = out.AdmitsOthers || allowsOtherRoutes(l)
	}
	return out
}

// allowsOtherRoutes reports whether a listener allows routes of other namespaces. The namespaces of
// a selector are not known, so they count. The default is Same (sigs.k8s.io/gateway-api
// apis/v1/gateway_types.go, RouteNamespaces).
func allowsOtherRoutes(l gwapiv1.Listener) bool {
	if l.AllowedRoutes == nil || l.AllowedRoutes.Namespaces == nil {
		return false
	}
	scope := ptr.Deref(l.AllowedRoutes.Namespaces.From, gwapiv1.NamespacesFromSame)
	return scope == gwapiv1.NamespacesFromAll || scope == gwapiv1.NamespacesFromSelector
}

// allowsListenerSets reports whether ListenerSets may attach to a Gateway. The default is None
// (sigs.k8s.io/gateway-api apis/v1/gateway_types.go, ListenerNamespaces).
func allowsListenerSets(o *gwapiv1.Gateway) bool {
	if o.Spec.AllowedListeners == nil || o.Spec.AllowedListeners.Namespaces == nil {
		return false
	}
	return ptr.Deref(o.Spec.AllowedListeners.Namespaces.From, gwapiv1.NamespacesFromNone) != gwapiv1.NamespacesFromNone
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

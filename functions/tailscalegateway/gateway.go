// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A gateway holds the objects that a reference to a Gateway leads to.
type gateway struct {
	ref gatewayv1alpha1.GatewayRef

	// gateway is nil if there is none.
	gateway *gwapiv1.Gateway

	// open means that the spec names no Gateway. choices are the names of those of the namespace then,
	// unless one of them is gateway.
	open    bool
	choices []string

	// services are the Services with the Gateway's labels.
	services []corev1.Service

	// refused are Services with the Gateway's labels that are not accepted as the Gateway's.
	refused []corev1.Service

	// envoyGateway are the namespaces of Envoy Gateway.
	envoyGateway []string

	// ungranted is the namespace of TailscaleGateways that no ReferenceGrant permits to share the
	// Gateway. The other fields are then empty. It is empty for a Gateway that may be shared.
	ungranted string

	// merged means that the Services are shared by all Gateways of the class.
	merged bool
}

// newGateway returns the objects that a reference leads to. A Gateway's own Services take
// precedence over those that its class shares: both exist for a moment when that setting changes.
func newGateway(ref gatewayv1alpha1.GatewayRef, g *gwapiv1.Gateway, own, merged []corev1.Service, namespaces []string) *gateway {
	out := &gateway{ref: ref, gateway: g, envoyGateway: namespaces}
	if g == nil {
		return out
	}
	out.services, out.refused = candidates(g, own, namespaces)
	if len(out.services) == 0 {
		var refused []corev1.Service
		out.services, refused = candidates(g, merged, namespaces)
		out.refused, out.merged = append(out.refused, refused...), true
	}
	return out
}

// name returns the Gateway's name, for messages.
func (g *gateway) name() string { return g.ref.Namespace + "/" + g.ref.Name }

// ambiguous reports whether the spec must choose one of several Gateways.
func (g *gateway) ambiguous() bool { return len(g.choices) > 0 }

// service returns the Gateway's Service. It returns nil unless there is exactly one.
func (g *gateway) service() *corev1.Service {
	if g.gateway == nil || len(g.services) != 1 {
		return nil
	}
	return &g.services[0]
}

// valid returns the condition GatewayValid.
func (g *gateway) valid() compose.Condition {
	c := compose.Condition{Type: meta.TypeGatewayValid, Status: compose.False}
	switch {
	case g.ungranted != "":
		c.Reason = meta.ReasonRefNotPermitted
		c.Message = fmt.Sprintf("Nothing of Gateway %s is shared: no ReferenceGrant in namespace %s permits it. Make one there, from group %s, kind %s, namespace %s, to group %s, kind %s, name %s",
			g.name(), g.ref.Namespace, gatewayv1alpha1.Group, gatewayv1alpha1.TailscaleGatewayKind, g.ungranted, gwapiv1.GroupName, g.ref.Kind, g.ref.Name)
	case g.ambiguous():
		c.Reason = meta.ReasonAmbiguous
		c.Message = fmt.Sprintf("Namespace %q has several Gateways; set spec.gatewayRef.name to one of %s", g.ref.Namespace, compose.List(g.choices...))
	case g.gateway == nil && g.open:
		c.Reason = meta.ReasonGatewayNotFound
		c.Message = fmt.Sprintf("There is no Gateway in namespace %q; create one, or set spec.gatewayRef", g.ref.Namespace)
	case g.gateway == nil:
		c.Reason = meta.ReasonGatewayNotFound
		c.Message = fmt.Sprintf("There is no Gateway %s; create it, or correct spec.gatewayRef", g.name())
	case len(g.services) > 1:
		c.Reason = meta.ReasonAmbiguous
		c.Message = fmt.Sprintf("The Services %s have the labels of Gateway %s; delete those that Envoy Gateway did not make", namesOf(g.services), g.name())
	case len(g.services) == 1:
		c.Status, c.Reason = compose.True, meta.ReasonServiceFound
		c.Message = fmt.Sprintf("Service %s/%s is in front of Gateway %s", g.services[0].GetNamespace(), g.services[0].GetName(), g.name())
		if len(g.refused) > 0 {
			c.Message += fmt.Sprintf(". Others have its labels and are not taken for its own: %s", namesOf(g.refused))
		}
	case g.refusal() != nil:
		c.Reason = meta.ReasonGatewayNotAccepted
		c.Message = fmt.Sprintf("The controller of Gateway %s refuses it: %s", g.name(), g.refusal().Message)
	case len(g.refused) > 0:
		c.Reason = meta.ReasonServiceRefused
		c.Message = fmt.Sprintf("The Services with the labels of Gateway %s are not taken for its own: %s. Its own is in the Gateway's namespace or Envoy Gateway's (%s), and has an address of the Gateway's status. "+
			"If Envoy Gateway runs in another namespace, set ENVOY_GATEWAY_NAMESPACES of the function", g.name(), namesOf(g.refused), compose.List(g.envoyGateway...))
	default:
		c.Reason = meta.ReasonServiceNotFound
		c.Message = fmt.Sprintf("Envoy Gateway has made no Service for Gateway %s; check that GatewayClass %q is one of Envoy Gateway's, and what the Gateway's conditions say",
			g.name(), g.gateway.Spec.GatewayClassName)
	}
	return c
}

// namesOf returns the names of Services, for messages.
func namesOf(services []corev1.Service) string {
	out := make([]string, len(services))
	for i, s := range services {
		out[i] = s.GetNamespace() + "/" + s.GetName()
	}
	slices.Sort(out)
	return compose.List(out...)
}

// refusal returns why its controller does not accept the Gateway. It returns nil if it does, or
// has not reported.
func (g *gateway) refusal() *metav1.Condition {
	c := apimeta.FindStatusCondition(g.gateway.Status.Conditions, string(gwapiv1.GatewayConditionAccepted))
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return c
}

// status returns the Gateway for the status. It returns nil unless there is exactly one Service.
func (g *gateway) status() *gatewayv1alpha1.GatewayStatus {
	s := g.service()
	if s == nil {
		return nil
	}
	out := &gatewayv1alpha1.GatewayStatus{
		Service: gatewayv1alpha1.GatewayService{Namespace: s.GetNamespace(), Name: s.GetName()},
	}
	if s.Spec.ClusterIP != corev1.ClusterIPNone {
		out.ClusterIP = s.Spec.ClusterIP
	}
	for _, l := range g.gateway.Spec.Listeners {
		if !serves(s, l) {
			continue
		}
		out.Listeners = append(out.Listeners, gatewayv1alpha1.GatewayListener{
			Name:     string(l.Name),
			Port:     l.Port,
			Protocol: string(l.Protocol),
			Hostname: string(ptr.Deref(l.Hostname, "")),
		})
	}
	return out
}

// ports returns the TCP ports of the Gateway, including those of ListenerSets. A Service that
// several Gateways share also has ports of the other Gateways: only those of this Gateway's own
// listeners count. A port that a user patched into the Service does not count.
func (g *gateway) ports() []int32 {
	s := g.service()
	if s == nil {
		return nil
	}
	var out []int32
	for _, p := range s.Spec.Ports {
		own := slices.ContainsFunc(g.gateway.Spec.Listeners, func(l gwapiv1.Listener) bool { return l.Port == p.Port && serves(s, l) })
		if p.Protocol == corev1.ProtocolTCP && (own || !g.merged && ofListener(p)) {
			out = append(out, p.Port)
		}
	}
	return out
}

// ofListener reports whether Envoy Gateway made a port for a listener, by the port's name
// (envoyproxy/gateway v1.9 internal/gatewayapi/listener.go, irListenerPortName).
func ofListener(p corev1.ServicePort) bool {
	return slices.ContainsFunc([]string{"http", "https", "tls", "tcp"}, func(protocol string) bool {
		return p.Name == fmt.Sprintf("%s-%d", protocol, p.Port)
	})
}

// serves reports whether a Service has a port for a listener. Envoy Gateway opens
// none for a listener that it refuses.
func serves(s *corev1.Service, l gwapiv1.Listener) bool {
	transport := corev1.ProtocolTCP
	if l.Protocol == gwapiv1.UDPProtocolType {
		transport = corev1.ProtocolUDP
	}
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == l.Port && p.Protocol == transport
	})
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package front judges the Gateway of a TailscaleGateway, and the Service that Envoy Gateway made in
// front of it. Any user may add a Gateway's labels to a Service, so that not every Service that has
// them counts.
package front

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

// KindGateway is the kind of a Gateway.
const KindGateway = "Gateway"

// NamespacesValue names the setting of Envoy Gateway's namespaces, for messages. The chart passes the
// flag; packages that are installed without it need a DeploymentRuntimeConfig.
const NamespacesValue = "function.envoyGatewayNamespaces of the chart tailscale-gateway (the function's flag --envoy-gateway-namespaces)"

// A Gateway holds the objects that a reference to a Gateway leads to.
type Gateway struct {
	// Ref is the reference with its defaults.
	Ref gatewayv1alpha1.GatewayRef

	// Gateway is nil if there is none.
	Gateway *gwapiv1.Gateway

	// Open means that the spec names no Gateway. Choices are the names of those of the namespace then,
	// unless one of them is Gateway.
	Open    bool
	Choices []string

	// services are the Services with the Gateway's labels.
	services []corev1.Service

	// refused are Services with the Gateway's labels that are not accepted as the Gateway's.
	refused []corev1.Service

	// EnvoyGateway are the namespaces of Envoy Gateway.
	EnvoyGateway []string

	// Ungranted is the namespace of TailscaleGateways that no ReferenceGrant permits to share the
	// Gateway. The other fields are then empty. It is empty for a Gateway that may be shared.
	Ungranted string

	// Found is the Gateway as the status contains it. It is nil unless there is exactly one Service.
	Found *gatewayv1alpha1.GatewayStatus

	// merged means that the Services are shared by all Gateways of the class.
	merged bool
}

// New returns the objects that a reference leads to. A Gateway's own Services take
// precedence over those that its class shares: both exist for a moment when that setting changes.
func New(ref gatewayv1alpha1.GatewayRef, g *gwapiv1.Gateway, own, merged []corev1.Service, namespaces []string) *Gateway {
	out := &Gateway{Ref: ref, Gateway: g, EnvoyGateway: namespaces}
	if g == nil {
		return out
	}
	out.services, out.refused = candidates(g, own, namespaces)
	if len(out.services) == 0 {
		var refused []corev1.Service
		out.services, refused = candidates(g, merged, namespaces)
		out.refused, out.merged = append(out.refused, refused...), true
	}
	out.Found = out.status()
	return out
}

// Name returns the Gateway's name, for messages.
func (g *Gateway) Name() string { return g.Ref.Namespace + "/" + g.Ref.Name }

// Ambiguous reports whether the spec must choose one of several Gateways.
func (g *Gateway) Ambiguous() bool { return len(g.Choices) > 0 }

// Permitted reports whether TailscaleGateways of the namespace may share the Gateway. It is true for
// nil, the Gateway that is not read yet.
func (g *Gateway) Permitted() bool { return g == nil || g.Ungranted == "" }

// Service returns the Gateway's Service. It returns nil unless there is exactly one.
func (g *Gateway) Service() *corev1.Service {
	if g.Gateway == nil || len(g.services) != 1 {
		return nil
	}
	return &g.services[0]
}

// Valid returns the condition GatewayValid.
func (g *Gateway) Valid() compose.Condition {
	c := compose.Condition{Type: meta.TypeGatewayValid, Status: compose.False}
	switch {
	case g.Ungranted != "":
		c.Reason = meta.ReasonRefNotPermitted
		c.Message = fmt.Sprintf("Nothing of Gateway %s is shared: no ReferenceGrant in namespace %s permits it. Make one there, from group %s, kind %s, namespace %s, to group %s, kind %s, name %s",
			g.Name(), g.Ref.Namespace, gatewayv1alpha1.Group, gatewayv1alpha1.TailscaleGatewayKind, g.Ungranted, gwapiv1.GroupName, g.Ref.Kind, g.Ref.Name)
	case g.Ambiguous():
		c.Reason = meta.ReasonAmbiguous
		c.Message = fmt.Sprintf("Namespace %q has several Gateways; set spec.gatewayRef.name to one of %s", g.Ref.Namespace, compose.List(g.Choices...))
	case g.Gateway == nil && g.Open:
		c.Reason = meta.ReasonGatewayNotFound
		c.Message = fmt.Sprintf("There is no Gateway in namespace %q; create one, or set spec.gatewayRef", g.Ref.Namespace)
	case g.Gateway == nil:
		c.Reason = meta.ReasonGatewayNotFound
		c.Message = fmt.Sprintf("There is no Gateway %s; create it, or correct spec.gatewayRef", g.Name())
	case len(g.services) > 1:
		c.Reason = meta.ReasonAmbiguous
		c.Message = fmt.Sprintf("The Services %s have the labels of Gateway %s; delete those that Envoy Gateway did not make", namesOf(g.services), g.Name())
	case len(g.services) == 1:
		c.Status, c.Reason = compose.True, meta.ReasonServiceFound
		c.Message = fmt.Sprintf("Service %s/%s is in front of Gateway %s", g.services[0].GetNamespace(), g.services[0].GetName(), g.Name())
		if len(g.refused) > 0 {
			c.Message += fmt.Sprintf(". Others have its labels and are not taken for its own: %s", namesOf(g.refused))
		}
	case g.refusal() != nil:
		c.Reason = meta.ReasonGatewayNotAccepted
		c.Message = fmt.Sprintf("The controller of Gateway %s refuses it: %s", g.Name(), g.refusal().Message)
	case len(g.refused) > 0:
		c.Reason = meta.ReasonServiceRefused
		c.Message = fmt.Sprintf("The Services with the labels of Gateway %s are not taken for its own: %s. Its own is in the Gateway's namespace or Envoy Gateway's (%s), and has an address of the Gateway's status. "+
			"If Envoy Gateway runs in another namespace, add that to "+NamespacesValue, g.Name(), namesOf(g.refused), compose.List(g.EnvoyGateway...))
	default:
		c.Reason = meta.ReasonServiceNotFound
		c.Message = fmt.Sprintf("Envoy Gateway has made no Service for Gateway %s; check that GatewayClass %q is one of Envoy Gateway's, and what the Gateway's conditions say",
			g.Name(), g.Gateway.Spec.GatewayClassName)
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
func (g *Gateway) refusal() *metav1.Condition {
	c := apimeta.FindStatusCondition(g.Gateway.Status.Conditions, string(gwapiv1.GatewayConditionAccepted))
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return c
}

// status returns the Gateway for the status. It returns nil unless there is exactly one Service.
func (g *Gateway) status() *gatewayv1alpha1.GatewayStatus {
	s := g.Service()
	if s == nil {
		return nil
	}
	out := &gatewayv1alpha1.GatewayStatus{
		Service: gatewayv1alpha1.GatewayService{Namespace: s.GetNamespace(), Name: s.GetName()},
	}
	if s.Spec.ClusterIP != corev1.ClusterIPNone {
		out.ClusterIP = s.Spec.ClusterIP
	}
	for _, l := range g.Gateway.Spec.Listeners {
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

// Ports returns the TCP ports of the Gateway, including those of ListenerSets. A Service that
// several Gateways share also has ports of the other Gateways: only those of this Gateway's own
// listeners count. A port that a user patched into the Service does not count.
func (g *Gateway) Ports() []int32 {
	s := g.Service()
	if s == nil {
		return nil
	}
	var out []int32
	for _, p := range s.Spec.Ports {
		own := slices.ContainsFunc(g.Gateway.Spec.Listeners, func(l gwapiv1.Listener) bool { return l.Port == p.Port && serves(s, l) })
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

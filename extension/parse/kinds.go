// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// Kinds that decide on the bootstrap of a Gateway's Envoys.
const (
	KindEnvoyProxy   = "EnvoyProxy"
	kindGatewayClass = "GatewayClass"
)

// BootstrapKinds returns the kinds that decide on the bootstrap of a Gateway's Envoys, in
// addition to Kinds.
func BootstrapKinds() map[string]client.Object {
	return map[string]client.Object{kindGatewayClass: &gwapiv1.GatewayClass{}, KindEnvoyProxy: NewPolicy(KindEnvoyProxy)}
}

// Kinds and groups that references name.
const (
	KindService            = "Service"
	KindGateway            = "Gateway"
	kindListenerSet        = "ListenerSet"
	KindTailscaleServices  = "TailscaleServices"
	KindTailscaleEndpoints = "TailscaleEndpoints"
	kindRoutePolicy        = "TailscaleRoutePolicy"
	KindTrafficPolicy      = "BackendTrafficPolicy"
	GroupEnvoyGateway      = "gateway.envoyproxy.io"
)

// Scheme returns a scheme of all kinds that a Store of package index accepts, except for
// BackendTrafficPolicy, which is unstructured.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	b := runtime.NewSchemeBuilder(
		corev1.AddToScheme,
		discoveryv1.AddToScheme,
		gwapiv1.Install,
		gwapiv1beta1.Install,
		gatewayv1alpha1.AddToScheme,
		tailnetv1alpha1.AddToScheme,
	)
	return s, errors.Wrap(b.AddToScheme(s), "cannot make a scheme")
}

// Kinds returns the kinds of objects that a Store of package index accepts, by their names. Secrets and
// ConfigMaps are not among them: package references reads only those that other objects name.
func Kinds() map[string]client.Object {
	return map[string]client.Object{
		"HTTPRoute":            &gwapiv1.HTTPRoute{},
		"GRPCRoute":            &gwapiv1.GRPCRoute{},
		"TCPRoute":             &gwapiv1.TCPRoute{},
		"UDPRoute":             &gwapiv1.UDPRoute{},
		"TLSRoute":             &gwapiv1.TLSRoute{},
		KindGateway:            &gwapiv1.Gateway{},
		kindListenerSet:        &gwapiv1.ListenerSet{},
		"ReferenceGrant":       &gwapiv1beta1.ReferenceGrant{},
		"BackendTLSPolicy":     &gwapiv1.BackendTLSPolicy{},
		KindTrafficPolicy:      NewPolicy(KindTrafficPolicy),
		KindTailscaleServices:  &gatewayv1alpha1.TailscaleServices{},
		KindTailscaleEndpoints: &gatewayv1alpha1.TailscaleEndpoints{},
		kindRoutePolicy:        &gatewayv1alpha1.TailscaleRoutePolicy{},
		"TailscaleGateway":     &gatewayv1alpha1.TailscaleGateway{},
		"ProxySet":             &tailnetv1alpha1.ProxySet{},
		"ServiceAttachment":    &tailnetv1alpha1.ServiceAttachment{},
		"Discovery":            &tailnetv1alpha1.Discovery{},
		KindService:            &corev1.Service{},
		"EndpointSlice":        &discoveryv1.EndpointSlice{},
	}
}

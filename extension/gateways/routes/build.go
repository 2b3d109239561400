// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// descriptionKey is the annotation with a description of the object.
const descriptionKey = "gateway.tailscale.com/description"

// directionLabel returns the label value for a direction.
func directionLabel(d tailnetv1alpha1.Direction) string { return strings.ToLower(string(d)) }

// metaOf returns the metadata of an object for a desired route. An object in another namespace
// than the TailscaleGateway can have no owner reference: the extension deletes it once the
// TailscaleGateway is gone.
func metaOf(o *gatewayv1alpha1.TailscaleGateway, w *Desired) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: w.Namespace,
		Name:      w.Name,
		Labels: map[string]string{
			ir.ManagedByLabel:          ir.ManagedBy,
			meta.LabelGateway:          o.Name,
			meta.LabelGatewayNamespace: o.Namespace,
			meta.LabelGatewayTailnet:   w.Tailnet,
			meta.LabelGenerated:        directionLabel(w.Direction),
		},
		Annotations: map[string]string{
			descriptionKey: oneLine("Generated for TailscaleGateway " + o.Namespace + "/" + o.Name + ", which sends " + w.Hostname + w.PathPrefix + " to " + w.target + ". To change it, edit routeGeneration of tailnet " + w.Tailnet + " there: changes to this object are undone."),
		},
	}
	if w.endpoint != "" {
		out.Labels[meta.LabelEndpoint] = w.endpoint
	}
	if w.Namespace == o.Namespace {
		out.OwnerReferences = []metav1.OwnerReference{OwnerReference(o)}
	}
	return out
}

// OwnerReference returns the owner reference of objects in the namespace of a TailscaleGateway, which
// are garbage-collected with it.
func OwnerReference(o *gatewayv1alpha1.TailscaleGateway) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(), Kind: KindTailscaleGateway, Name: o.Name, UID: o.UID}
}

// oneLine replaces line breaks and control characters by spaces, because users choose the names
// of their devices, and the text is shown in lists and terminals.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return ' '
		}
		return r
	}, s)
}

// New returns the route for a desired route. It sets all defaults of the API, so that it is
// equal to the existing object.
func New(o *gatewayv1alpha1.TailscaleGateway, w *Desired) client.Object {
	if w.Kind == KindGRPCRoute {
		return newGRPCRoute(o, w)
	}
	return NewHTTPRoute(o, w)
}

// parentsOf returns references to the listeners of a desired route.
func parentsOf(o *gatewayv1alpha1.TailscaleGateway, w *Desired) []gwapiv1.ParentReference {
	gw := o.GatewayName()
	var parents []gwapiv1.ParentReference
	for _, l := range w.listeners {
		parents = append(parents, gwapiv1.ParentReference{
			Group:       ptr.To[gwapiv1.Group](gwapiv1.GroupName),
			Kind:        ptr.To[gwapiv1.Kind](KindGateway),
			Namespace:   ptr.To(gwapiv1.Namespace(gw.Namespace)),
			Name:        gwapiv1.ObjectName(gw.Name),
			SectionName: ptr.To(l.Name),
		})
	}
	return parents
}

// hostnamesOf returns the host names of a desired route. None means any host.
func hostnamesOf(w *Desired) []gwapiv1.Hostname {
	var out []gwapiv1.Hostname
	for _, h := range w.hosts() {
		out = append(out, gwapiv1.Hostname(h))
	}
	return out
}

// backendOf returns the reference to the backend of a desired route.
func backendOf(w *Desired) gwapiv1.BackendRef {
	out := gwapiv1.BackendRef{
		BackendObjectReference: gwapiv1.BackendObjectReference{
			Group:     ptr.To[gwapiv1.Group](""),
			Kind:      ptr.To[gwapiv1.Kind]("Service"),
			Namespace: ptr.To(gwapiv1.Namespace(w.Backend.Namespace)),
			Name:      gwapiv1.ObjectName(w.Backend.Name),
			Port:      ptr.To(w.Backend.Port),
		},
		Weight: ptr.To[int32](1),
	}
	if w.services {
		out.Group, out.Kind = ptr.To[gwapiv1.Group](gwapiv1.Group(gatewayv1alpha1.SchemeGroupVersion.Group)), ptr.To[gwapiv1.Kind](KindServices)
	}
	return out
}

// newGRPCRoute returns a GRPCRoute for all methods of a host.
func newGRPCRoute(o *gatewayv1alpha1.TailscaleGateway, w *Desired) *gwapiv1.GRPCRoute {
	return &gwapiv1.GRPCRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gwapiv1.GroupVersion.String(), Kind: KindGRPCRoute},
		ObjectMeta: metaOf(o, w),
		Spec: gwapiv1.GRPCRouteSpec{
			CommonRouteSpec: gwapiv1.CommonRouteSpec{ParentRefs: parentsOf(o, w)},
			Hostnames:       hostnamesOf(w),
			Rules:           []gwapiv1.GRPCRouteRule{{BackendRefs: []gwapiv1.GRPCBackendRef{{BackendRef: backendOf(w)}}}},
		},
	}
}

// NewHTTPRoute returns an HTTPRoute for a path prefix of a host.
func NewHTTPRoute(o *gatewayv1alpha1.TailscaleGateway, w *Desired) *gwapiv1.HTTPRoute {
	rule := gwapiv1.HTTPRouteRule{
		Matches:     []gwapiv1.HTTPRouteMatch{{Path: &gwapiv1.HTTPPathMatch{Type: ptr.To(gwapiv1.PathMatchPathPrefix), Value: ptr.To(w.PathPrefix)}}},
		BackendRefs: []gwapiv1.HTTPBackendRef{{BackendRef: backendOf(w)}},
	}
	if f := rewrite(w); f != nil {
		rule.Filters = []gwapiv1.HTTPRouteFilter{{Type: gwapiv1.HTTPRouteFilterURLRewrite, URLRewrite: f}}
	}
	return &gwapiv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gwapiv1.GroupVersion.String(), Kind: KindHTTPRoute},
		ObjectMeta: metaOf(o, w),
		Spec: gwapiv1.HTTPRouteSpec{
			CommonRouteSpec: gwapiv1.CommonRouteSpec{ParentRefs: parentsOf(o, w)},
			Hostnames:       hostnamesOf(w),
			Rules:           []gwapiv1.HTTPRouteRule{rule},
		},
	}
}

// rewrite returns a filter that replaces the host and the path prefix of the Gateway by those
// of the backend. It returns nil if the backend needs no filter.
func rewrite(w *Desired) *gwapiv1.HTTPURLRewriteFilter {
	f := &gwapiv1.HTTPURLRewriteFilter{}
	if w.PathPrefix != "/" {
		f.Path = &gwapiv1.HTTPPathModifier{Type: gwapiv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: ptr.To("/")}
	}
	if w.fqdn != "" {
		f.Hostname = ptr.To(gwapiv1.PreciseHostname(w.fqdn))
	}
	if f.Path == nil && f.Hostname == nil {
		return nil
	}
	return f
}

// NewTLSPolicy returns a BackendTLSPolicy for a desired route with a TLS backend.
func NewTLSPolicy(o *gatewayv1alpha1.TailscaleGateway, w *Desired) *gwapiv1.BackendTLSPolicy {
	return &gwapiv1.BackendTLSPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: gwapiv1.GroupVersion.String(), Kind: KindTLSPolicy},
		ObjectMeta: metaOf(o, w),
		Spec: gwapiv1.BackendTLSPolicySpec{
			TargetRefs: []gwapiv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gwapiv1.LocalPolicyTargetReference{Kind: "Service", Name: gwapiv1.ObjectName(w.Backend.Name)},
			}},
			Validation: gwapiv1.BackendTLSPolicyValidation{
				Hostname:                gwapiv1.PreciseHostname(w.fqdn),
				WellKnownCACertificates: ptr.To(gwapiv1.WellKnownCACertificatesSystem),
			},
		},
	}
}

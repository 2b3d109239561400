// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// stripEnvoyProxy keeps only the fields that decide on a bootstrap.
func stripEnvoyProxy(spec map[string]any) {
	maps.DeleteFunc(spec, func(k string, _ any) bool { return k != "mergeType" && k != "mergeGateways" && k != "bootstrap" })
}

// sameFound reports whether an update changes no field of a Discovery that policies read.
func sameFound(old, current client.Object) bool {
	discovery, ok := current.(*tailnetv1alpha1.Discovery)
	if !ok {
		return true
	}
	previous, ok := old.(*tailnetv1alpha1.Discovery)
	return ok && reflect.DeepEqual(ParseDiscovery(previous), ParseDiscovery(discovery))
}

// stripDiscovery empties a Discovery that no policy owns.
func stripDiscovery(o *tailnetv1alpha1.Discovery) {
	if _, ok := o.Labels[ir.RoutePolicyLabel]; !ok {
		o.Spec, o.Status = tailnetv1alpha1.DiscoverySpec{}, tailnetv1alpha1.DiscoveryStatus{}
	}
}

// stripServicesStatus keeps only the DNS name of a service that leads to Gateways: another
// object's routes to that name might lead back to the Gateway.
func stripServicesStatus(o *gatewayv1alpha1.TailscaleServices) {
	vip := o.Status.VIPServiceStatus
	o.Status = gatewayv1alpha1.TailscaleServicesStatus{}
	leads := func(b gatewayv1alpha1.Backend) bool { return b.Kind == gatewayv1alpha1.BackendKindGateway }
	if vip != nil && vip.DNSName != "" && slices.ContainsFunc(o.Spec.Backends, leads) {
		o.Status.VIPServiceStatus = &gatewayv1alpha1.ServiceVIPStatus{DNSName: vip.DNSName}
	}
}

// hasEndpoint reports whether the spec lists the endpoint that a target belongs to.
func hasEndpoint(o *gatewayv1alpha1.TailscaleEndpoints, target string) bool {
	name, _, _ := strings.Cut(target, "/")
	return slices.ContainsFunc(egress.Expand(o.Spec.Endpoints), func(e gatewayv1alpha1.Endpoint) bool { return e.Name == name })
}

// stripEndpointsStatus keeps the tailnet, the offline devices, and the Services of endpoints in the spec.
// If a Gateway discovers with the object, it also keeps the results of the discovery and its
// condition.
func stripEndpointsStatus(o *gatewayv1alpha1.TailscaleEndpoints) {
	status := o.Status
	o.Status = gatewayv1alpha1.TailscaleEndpointsStatus{Tailnet: status.Tailnet}
	_, discovers := o.Labels[meta.LabelGateway]
	for _, d := range status.DiscoveredEndpoints {
		switch {
		case discovers:
			o.Status.DiscoveredEndpoints = append(o.Status.DiscoveredEndpoints, gatewayv1alpha1.DiscoveredEndpoint{
				Name: d.Name, Source: d.Source, TailscaleFQDN: d.TailscaleFQDN, Health: d.Health,
			})
		case d.Health == healthOffline:
			o.Status.DiscoveredEndpoints = append(o.Status.DiscoveredEndpoints, gatewayv1alpha1.DiscoveredEndpoint{Name: d.Name, Health: d.Health})
		}
	}
	for _, t := range status.EgressTargets {
		if !discovers && !hasEndpoint(o, t.Name) {
			continue
		}
		o.Status.EgressTargets = append(o.Status.EgressTargets, gatewayv1alpha1.EgressTargetStatus{Name: t.Name, Service: t.Service})
	}
	for _, d := range status.Devices {
		// One device is enough to know the tailnet's domain.
		if d.TailscaleFQDN != "" && (discovers || len(o.Spec.Endpoints) > 0) {
			o.Status.Devices = []gatewayv1alpha1.DeviceStatus{{TailscaleFQDN: d.TailscaleFQDN}}
			break
		}
	}
	if !discovers {
		return
	}
	if c := status.GetCondition(meta.TypeDiscoverySuccessful); c.Status != corev1.ConditionUnknown {
		o.Status.SetConditions(xpv2.Condition{Type: c.Type, Status: c.Status})
	}
}

// Strip removes the fields of an object that the extension does not read, which is most of
// it.
func Strip(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	stripAnnotations(o)
	o.SetOwnerReferences(nil)
	switch o := o.(type) {
	case *gwapiv1.HTTPRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.GRPCRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.TCPRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.UDPRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.TLSRoute:
		stripRouteStatus(&o.Status.RouteStatus)
	case *gwapiv1.Gateway:
		o.Status = gwapiv1.GatewayStatus{}
	case *gwapiv1.GatewayClass:
		o.Status = gwapiv1.GatewayClassStatus{}
	case *gwapiv1.ListenerSet:
		o.Status = gwapiv1.ListenerSetStatus{}
	case *gwapiv1.BackendTLSPolicy:
		stripAncestors(&o.Status)
	case *gatewayv1alpha1.TailscaleServices:
		stripServicesStatus(o)
	case *gatewayv1alpha1.TailscaleEndpoints:
		o.Spec.Proxy = gatewayv1alpha1.Proxy{}
		stripEndpointsStatus(o)
	case *gatewayv1alpha1.TailscaleGateway:
		stripGatewayStatus(o)
	case *tailnetv1alpha1.Discovery:
		stripDiscovery(o)
	case *gatewayv1alpha1.TailscaleRevision:
		o.Status = gwapiv1.PolicyStatus{}
	case *corev1.Service:
		stripService(o)
	case *discoveryv1.EndpointSlice:
		stripEndpointSlice(o)
	case *unstructured.Unstructured:
		stripPolicy(o)
	}
	return o, nil
}

// stripAnnotations keeps only an annotation of Services that Envoy Gateway reads, too.
func stripAnnotations(o client.Object) {
	mode, ok := o.GetAnnotations()[corev1.AnnotationTopologyMode]
	o.SetAnnotations(nil)
	if _, service := o.(*corev1.Service); service && ok {
		o.SetAnnotations(map[string]string{corev1.AnnotationTopologyMode: mode})
	}
}

// stripPolicy removes the fields of Envoy Gateway's policies that are not read. Of a policy that
// protects whatever it contains it keeps only the targets.
func stripPolicy(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "status")
	spec, ok := o.Object["spec"].(map[string]any)
	if !ok {
		return
	}
	if o.GetKind() == KindEnvoyProxy {
		stripEnvoyProxy(spec)
		return
	}
	if open, listed := policyKinds[o.GetKind()]; listed && open == nil {
		stripTargets(spec)
	}
}

// ExtensionController is the controller name of the installed extension in the status of policies. It
// begins those of dedicated extensions.
const ExtensionController gwapiv1.GatewayController = "gateway.tailscale.com/extension"

// IsExtension reports whether one of our extensions has a controller name.
func IsExtension(n gwapiv1.GatewayController) bool {
	return n == ExtensionController || strings.HasPrefix(string(n), string(ExtensionController)+"-")
}

// stripAncestors keeps only the ancestors of our extensions, and the controllers of others, so that an
// entry that another controller removed is missed.
func stripAncestors(s *gwapiv1.PolicyStatus) {
	for i, a := range s.Ancestors {
		if !IsExtension(a.ControllerName) {
			s.Ancestors[i] = gwapiv1.PolicyAncestorStatus{ControllerName: a.ControllerName}
		}
	}
}

// stripRouteStatus keeps only the conditions Accepted and ResolvedRefs of each parent, with
// a reason and message if they are not True. The remaining status changes only if one of
// these does.
func stripRouteStatus(s *gwapiv1.RouteStatus) {
	for i := range s.Parents {
		var conds []metav1.Condition
		for _, c := range s.Parents[i].Conditions {
			if c.Type != string(gwapiv1.RouteConditionAccepted) && c.Type != string(gwapiv1.RouteConditionResolvedRefs) {
				continue
			}
			retained := metav1.Condition{Type: c.Type, Status: c.Status}
			if c.Status != metav1.ConditionTrue {
				retained.Reason, retained.Message = c.Reason, c.Message
			}
			conds = append(conds, retained)
		}
		s.Parents[i].Conditions = conds
	}
}

// Same reports whether an update changed only fields that the extension does not read, such
// as the status. Updates of kinds without generations are never the same.
func Same(old, current any) bool {
	a, ok := old.(client.Object)
	b, bOK := current.(client.Object)
	if ok && bOK && !sameFound(a, b) {
		return false
	}
	if e, ok := current.(*gatewayv1alpha1.TailscaleEndpoints); ok {
		// The extension reads the status of a TailscaleEndpoints.
		previous, isOne := old.(*gatewayv1alpha1.TailscaleEndpoints)
		if !isOne || !maps.Equal(OfflineEndpoints(previous), OfflineEndpoints(e)) {
			return false
		}
	}
	if g, ok := current.(*gatewayv1alpha1.TailscaleGateway); ok {
		// So it does that of a TailscaleGateway.
		previous, isOne := old.(*gatewayv1alpha1.TailscaleGateway)
		if !isOne || previous.GatewayName() != g.GatewayName() || !maps.Equal(RefusedTailnets(previous), RefusedTailnets(g)) {
			return false
		}
	}
	return ok && bOK && a.GetUID() == b.GetUID() && b.GetGeneration() != 0 && a.GetGeneration() == b.GetGeneration() && maps.Equal(a.GetLabels(), b.GetLabels())
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
)

// grpcRouteKind is the second kind of routes whose status Envoy Gateway alone writes. The extension corrects those of
// other kinds.
var grpcRouteKind = routeKind.GroupVersion().WithKind("GRPCRoute")

// routes returns the HTTPRoutes and GRPCRoutes with backends of our kinds.
func (r *reader) routes() ([]check.Route, error) {
	var out []check.Route
	for _, gvk := range []schema.GroupVersionKind{routeKind, grpcRouteKind} {
		err := page(r.ctx, r.kube, gvk, func(u *unstructured.Unstructured) {
			if o, ok := routeOf(u); ok {
				out = append(out, o)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// routeOf returns what counts of a route, and whether it has a backend of our kinds. Of both kinds of routes, the fields
// that count are the same. A route that is not as its kind says has none.
func routeOf(u *unstructured.Unstructured) (check.Route, bool) {
	o := struct {
		Spec struct {
			Rules []struct {
				BackendRefs []gwapiv1.BackendObjectReference `json:"backendRefs"`
			} `json:"rules"`
		} `json:"spec"`
		Status gwapiv1.RouteStatus `json:"status"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return check.Route{}, false
	}
	found := false
	for _, rule := range o.Spec.Rules {
		found = found || slices.ContainsFunc(rule.BackendRefs, func(b gwapiv1.BackendObjectReference) bool {
			return b.Group != nil && string(*b.Group) == gatewayv1alpha1.Group
		})
	}
	out := check.Route{Reference: referenceOf(u), Created: u.GetCreationTimestamp().Time}
	for _, p := range o.Status.Parents {
		for _, c := range p.Conditions {
			if c.Type == string(gwapiv1.RouteConditionResolvedRefs) {
				out.References = append(out.References, check.ResolvedReferences{
					Controller: string(p.ControllerName), Status: string(c.Status), Reason: c.Reason, Message: c.Message,
					Current: c.ObservedGeneration == u.GetGeneration(), Changed: c.LastTransitionTime.Time,
				})
			}
		}
	}
	return out, found
}

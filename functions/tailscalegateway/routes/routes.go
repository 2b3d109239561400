// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package routes reads the routes of a Gateway as the extension reports them.
package routes

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
)

const (
	// KindService is the kind of a backend's target. That of a route's is the route's kind.
	KindService = "Service"

	// KindUDPRoute is the kind of routes to which no Tailscale Service can lead.
	KindUDPRoute = "UDPRoute"
)

// Target returns the target of a route's service.
func Target(r tailnetv1alpha1.ReportedRoute) string {
	return r.Kind + "/" + r.Namespace + "/" + r.Name
}

// BackendTarget returns the target of a backend's service.
func BackendTarget(b tailnetv1alpha1.ReportedBackend) string {
	return KindService + "/" + b.Namespace + "/" + b.Name
}

// Sorted returns the routes of a report by kind, namespace and name.
func Sorted(report *tailnetv1alpha1.GatewayReportSpec) []tailnetv1alpha1.ReportedRoute {
	return slices.SortedFunc(slices.Values(report.Routes), func(a, b tailnetv1alpha1.ReportedRoute) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Backends returns the ports to which routes send requests, each once, by namespace, name and
// port of the Service.
func Backends(routes []tailnetv1alpha1.ReportedRoute) []tailnetv1alpha1.ReportedBackend {
	var backends []tailnetv1alpha1.ReportedBackend
	for _, r := range routes {
		if r.Kind == KindUDPRoute {
			continue
		}
		for _, b := range r.Backends {
			b.ProtectedBy = ""
			backends = append(backends, b)
		}
	}
	slices.SortFunc(backends, func(a, b tailnetv1alpha1.ReportedBackend) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	return slices.Compact(backends)
}

// Policies returns the policies that protect Services, by the target of the Service's Tailscale
// Service.
func Policies(routes []tailnetv1alpha1.ReportedRoute) map[string]string {
	out := map[string]string{}
	for _, r := range routes {
		for _, b := range r.Backends {
			target := BackendTarget(b)
			out[target] = cmp.Or(out[target], b.ProtectedBy)
		}
	}
	return out
}

// Generated returns the generated routes in a state, in the order of the report.
func Generated(report *tailnetv1alpha1.GatewayReportSpec, state tailnetv1alpha1.GeneratedRouteState) []tailnetv1alpha1.ReportedGeneratedRoute {
	var out []tailnetv1alpha1.ReportedGeneratedRoute
	for _, g := range report.GeneratedRoutes {
		if g.State == state {
			out = append(out, g)
		}
	}
	return out
}

// Omitted returns the numbers of routes that do not fit into a report, which may be nil.
func Omitted(report *tailnetv1alpha1.GatewayReportSpec) tailnetv1alpha1.ReportedOmissions {
	if report == nil {
		return tailnetv1alpha1.ReportedOmissions{}
	}
	return ptr.Deref(report.Omitted, tailnetv1alpha1.ReportedOmissions{})
}

// TooMany returns a message about omitted routes. It is without numbers: the report has them, and
// each change of a message is a write.
func TooMany(owner string) string {
	return "The Gateway has more routes than a report has room for, and the omitted ones are neither shared nor resolved: split them over several Gateways; spec.omitted of GatewayReport " + names.GatewayReport(owner) + " counts them"
}

// ServiceRequests returns the requests of routes and of the Services behind them, by their service's
// target. The Gateway's own services belong to the TailscaleGateway. The report may be nil.
func ServiceRequests(report *tailnetv1alpha1.GatewayReportSpec) map[string]quota.Request {
	out := map[string]quota.Request{}
	if report == nil {
		return out
	}
	for _, r := range report.Routes {
		request := routeRequest(r)
		out[Target(r)] = request
		for _, b := range r.Backends {
			older(out, BackendTarget(b), request)
		}
	}
	return out
}

// HostnameRequests returns the requests of the hostnames of routes, each by the oldest route that has
// it. Other names are of the TailscaleGateway or of the Gateway. The report may be nil.
func HostnameRequests(report *tailnetv1alpha1.GatewayReportSpec) map[string]quota.Request {
	out := map[string]quota.Request{}
	if report == nil {
		return out
	}
	for _, r := range report.Routes {
		for _, h := range r.Hostnames {
			older(out, strings.ToLower(h), routeRequest(r))
		}
	}
	return out
}

// routeRequest returns the request of a route.
func routeRequest(r tailnetv1alpha1.ReportedRoute) quota.Request {
	out := quota.Request{Owner: r.Namespace, UID: cmp.Or(r.UID, Target(r))}
	if r.Created != nil {
		out.Created = r.Created.Time
	}
	return out
}

// older sets a request, unless there is an older one.
func older(requests map[string]quota.Request, key string, request quota.Request) {
	existing, ok := requests[key]
	if !ok || cmp.Or(request.Created.Compare(existing.Created), cmp.Compare(request.UID, existing.UID)) < 0 {
		requests[key] = request
	}
}

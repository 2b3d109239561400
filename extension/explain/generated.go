// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// anyHost is the hostname in reports for a route without hostnames.
const anyHost = "*"

// kindGRPCRoute is the kind in reports for GRPCRoutes; others are HTTPRoutes.
const kindGRPCRoute = "GRPCRoute"

// maxGenerated is the greatest number of generated routes in an answer or an overview.
const maxGenerated = 50

// Reports returns the GatewayReports of all TailscaleGateways, in any order. Nil stands for none.
type Reports func() []*tailnetv1alpha1.GatewayReport

func (r Reports) all() []*tailnetv1alpha1.GatewayReport {
	if r == nil {
		return nil
	}
	return r()
}

// A Generated route was made for a TailscaleGateway, or should have been.
type Generated struct {
	// TailscaleGateway that generates it: NAMESPACE/NAME.
	TailscaleGateway string `json:"tailscaleGateway"`

	// Tailnet, by its name in the TailscaleGateway.
	Tailnet   string                    `json:"tailnet"`
	Direction tailnetv1alpha1.Direction `json:"direction"`

	// Service or device that it leads to.
	Service string `json:"service"`

	// Route is KIND NAMESPACE/NAME. Empty if none was made.
	Route string `json:"route,omitempty"`

	Hostname   string `json:"hostname"`
	PathPrefix string `json:"pathPrefix"`

	State tailnetv1alpha1.GeneratedRouteState `json:"state"`

	// Message with the reason if it does not answer.
	Message string `json:"message,omitempty"`
}

// generated returns the generated routes in reports that fulfil a condition, and their number.
// Routes that do not answer come first; a long list is cut.
func generated(reports []*tailnetv1alpha1.GatewayReport, keep func(Generated) bool) ([]Generated, int) {
	out := []Generated{}
	for _, r := range reports {
		for _, g := range r.Spec.GeneratedRoutes {
			as := Generated{
				TailscaleGateway: types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.Gateway}.String(),
				Tailnet:          g.Tailnet, Direction: g.Direction, Service: g.Service,
				Hostname: g.Hostname, PathPrefix: g.PathPrefix, State: g.State, Message: g.Message,
			}
			if g.Name != "" {
				kind := ir.KindHTTPRoute
				if g.Kind == kindGRPCRoute {
					kind = ir.KindGRPCRoute
				}
				as.Route = routeName(ir.RouteKey{Kind: kind, NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: g.Name}})
			}
			if keep(as) {
				out = append(out, as)
			}
		}
	}
	slices.SortFunc(out, func(a, b Generated) int {
		return cmp.Or(compareBool(a.answers(), b.answers()), cmp.Compare(a.TailscaleGateway, b.TailscaleGateway), cmp.Compare(a.Tailnet, b.Tailnet),
			cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.PathPrefix, b.PathPrefix))
	})
	return out[:min(len(out), maxGenerated)], len(out)
}

func (g Generated) answers() bool { return g.State == tailnetv1alpha1.GeneratedRouteAccepted }

// holds reports whether a text occurs in the identifying fields of a generated route.
func (g Generated) holds(filter string) bool {
	return slices.ContainsFunc([]string{g.TailscaleGateway, g.Tailnet, g.Service, g.Route, g.Hostname + g.PathPrefix}, func(s string) bool { return strings.Contains(s, filter) })
}

// takes reports whether a generated route matches a request.
func (g Generated) takes(q Query) bool {
	if q.Path == "" {
		return false
	}
	hosts := []string{g.Hostname}
	if g.Hostname == anyHost {
		hosts = nil
	}
	_, _, ok := matchHost(hosts, q.Host)
	return ok && matchPath(ir.Match{PathType: string(gwapiv1.PathMatchPathPrefix), Path: g.PathPrefix}, q.Path)
}

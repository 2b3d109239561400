// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package services

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// maxRecorded is the maximum number of routes in a record.
const maxRecorded = 64

// Children returns the services that can exist. A new service has to wait for proxies that
// can host it: it changes a dozen times until it is configured, and more often if it has to wait
// itself, and Crossplane's circuit breaker counts each change twice. All services start at the same
// time, so that the first answers before the last is created.
func (p Plan) Children() compose.Children {
	var out compose.Children
	for _, v := range p.Services {
		if !v.Wanted() {
			out.Incomplete = out.Incomplete || v.mistake != ""
			// A mistake does not delete an existing service.
			if v.Observed == nil || v.omitted != "" {
				continue
			}
		}
		keep := v.keep || !v.Wanted()
		if v.Observed == nil && (keep || !v.Tailnet.Ingress.CanHost()) {
			out.Incomplete = true
			continue
		}
		// The circuit breaker may drop changes until then.
		if !v.settled() {
			out.Incomplete, out.Requeue = true, true
		}
		desire := composeService
		if keep {
			desire = keepService
		}
		out.Add(v.key(), desire(p.Facts, v), v.settled())
	}
	return out
}

// serviceMeta returns the metadata of a TailscaleServices.
func serviceMeta(f Facts, v *Service) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: v.Name, Namespace: f.Owner.Namespace, Labels: v.Tailnet.Labels(f.Owner)}
}

// keepService returns an observed TailscaleServices unchanged.
func keepService(f Facts, v *Service) *gatewayv1alpha1.TailscaleServices {
	return &gatewayv1alpha1.TailscaleServices{ObjectMeta: serviceMeta(f, v), Spec: v.Observed.Spec}
}

// composeService returns the TailscaleServices of a service.
func composeService(f Facts, v *Service) *gatewayv1alpha1.TailscaleServices {
	o := &gatewayv1alpha1.TailscaleServices{ObjectMeta: serviceMeta(f, v)}
	vip := v.Tailnet.VIPService
	o.Spec = gatewayv1alpha1.TailscaleServicesSpec{
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{
			meta.LabelGateway:        f.Owner.Name,
			meta.LabelGatewayTailnet: v.Tailnet.Name,
			meta.LabelDirection:      string(gatewayv1alpha1.ConnectionTypeIngress),
		}},
		VIPService: gatewayv1alpha1.VIPServiceTemplate{
			Name:        gatewayv1alpha1.ServiceName(v.vip),
			Tags:        vip.Tags,
			Comment:     vip.Comment,
			AutoApprove: ptr.To(ptr.Deref(vip.AutoApprove, true)),
			Routes:      recordedRoutes(f, v),

			AdoptionPolicy: vip.AdoptionPolicy,
			DeletionPolicy: vip.DeletionPolicy,
		},
		Backends: v.Backends,
		Sharing:  vip.Sharing,
		Drain:    f.Drain,
	}
	for _, b := range v.Backends {
		o.Spec.VIPService.Ports = append(o.Spec.VIPService.Ports, rules.Port(*b.VIPPort))
	}
	return o
}

// recordedRoutes returns the routes that lead to a service, for the cluster's record of a shared
// one. A service that is not shared has no record, which saves a write for each route.
func recordedRoutes(f Facts, v *Service) []string {
	if !v.Tailnet.SharesServices() {
		return nil
	}
	if f.Report == nil {
		if v.Observed == nil {
			return nil
		}
		return v.Observed.Spec.VIPService.Routes
	}
	var out, previous []string
	for _, r := range f.Report.Routes {
		if r.Kind != routes.KindUDPRoute && v.answersFor(r) {
			out = append(out, routes.Target(r))
		}
	}
	if v.Observed != nil {
		previous = v.Observed.Spec.VIPService.Routes
	}
	slices.Sort(out)
	out, _ = quota.Keep(maxRecorded, out, previous)
	return out
}

// answersFor reports whether requests to a service reach a route, or its backend directly.
func (v *Service) answersFor(r tailnetv1alpha1.ReportedRoute) bool {
	switch {
	case v.IsGateway():
		return slices.ContainsFunc(v.Tailnet.Shared, func(l tailnets.Listener) bool { return slices.Contains(r.Ports, l.Port) })
	case v.kind() == strings.ToLower(routes.KindService):
		return slices.ContainsFunc(r.Backends, func(b tailnetv1alpha1.ReportedBackend) bool { return routes.BackendTarget(b) == v.Target })
	}
	return routes.Target(r) == v.Target
}

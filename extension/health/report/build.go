// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package report writes the health of endpoints to the Kubernetes API: one HealthReport for each
// object that routes name, from which functions build status. One replica writes a report when an
// endpoint's health changes. Package health decides about health.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// maxUnhealthy endpoints of a port, and maxPorts and maxRoutes of an object, are reported.
	maxUnhealthy = 32
	maxPorts     = 256
	maxRoutes    = 64
)

// An Object is a TailscaleServices or TailscaleEndpoints with a report.
type Object struct {
	Kind ir.TargetKind
	types.NamespacedName
}

// ObjectOf returns the object of a target.
func ObjectOf(k ir.TargetKey) Object {
	return Object{Kind: k.Kind, NamespacedName: types.NamespacedName{Namespace: k.Namespace, Name: k.Name}}
}

// servicesOf returns the object of a TailscaleServices.
func servicesOf(n types.NamespacedName) Object {
	return Object{Kind: ir.TargetServices, NamespacedName: n}
}

// kind returns the kind in the API.
func (o Object) kind() string {
	if o.Kind == ir.TargetEndpoints {
		return "TailscaleEndpoints"
	}
	return "TailscaleServices"
}

// report returns the name of the object's HealthReport.
func (o Object) report() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: names.HealthReport(o.kind(), o.Name)}
}

// objectOf returns the object of a report. False if the report is for another kind, or does not
// have the name that this package uses.
func objectOf(r *tailnetv1alpha1.HealthReport) (Object, bool) {
	o := Object{Kind: ir.TargetServices, NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.TargetRef.Name}}
	if r.Spec.TargetRef.Kind == "TailscaleEndpoints" {
		o.Kind = ir.TargetEndpoints
	}
	return o, r.Name == o.report().Name
}

// maxReason is the greatest length of a failover's reason, in bytes.
const maxReason = 256

// elsewhere reports whether a port has no local endpoint that answers.
func elsewhere(s *tailnetv1alpha1.HealthReportSpec) bool {
	return slices.ContainsFunc(s.Ports, func(p tailnetv1alpha1.HealthReportPort) bool { return p.Tier != tailnetv1alpha1.HealthTierLocal })
}

// failover returns the failover of a report that replaces another at a time. Only a change of the
// traffic's destination counts: the first report of an object has none.
func failover(previous, current *tailnetv1alpha1.HealthReportSpec, at metav1.Time) *tailnetv1alpha1.HealthReportFailover {
	if previous == nil {
		return nil
	}
	switch newAway, oldAway := elsewhere(previous), elsewhere(current); {
	case !newAway && oldAway:
		return &tailnetv1alpha1.HealthReportFailover{Failover: at, Reason: reason(current)}
	case newAway && !oldAway && previous.Failover != nil:
		out := *previous.Failover
		out.Failback = &at
		return &out
	}
	return previous.Failover
}

// reason returns the reason of a failover: that of the first unhealthy endpoint of a port without
// local endpoints.
func reason(s *tailnetv1alpha1.HealthReportSpec) string {
	for _, p := range s.Ports {
		if p.Tier != tailnetv1alpha1.HealthTierLocal && len(p.UnhealthyEndpoints) > 0 {
			out := fmt.Sprintf("%s at port %d: %s", p.UnhealthyEndpoints[0].Name, p.Port, cmp.Or(p.UnhealthyEndpoints[0].Reason, "does not answer"))
			return strings.ToValidUTF8(out[:min(len(out), maxReason)], "")
		}
	}
	return "there is no local endpoint"
}

// build returns the report of an object from its targets, one for each port, and the routes that lead to it.
// It is pure, and its output is sorted.
func build(o Object, targets []health.Target, routes []ir.RouteKey) tailnetv1alpha1.HealthReportSpec {
	out := tailnetv1alpha1.HealthReportSpec{TargetRef: tailnetv1alpha1.HealthReportTarget{Kind: o.kind(), Name: o.Name}}
	for _, r := range routes {
		out.Routes = append(out.Routes, strings.Join([]string{r.Kind.Manifest(), r.Namespace, r.Name}, "/"))
	}
	slices.Sort(out.Routes)
	for _, t := range targets {
		p := tailnetv1alpha1.HealthReportPort{Port: t.Key.Port, Protocol: string(t.Key.Protocol), Tier: tailnetv1alpha1.HealthTier(t.Tier)}
		for _, e := range t.Endpoints {
			p.Endpoints++
			if e.IsHealthy {
				p.Healthy++
				continue
			}
			p.UnhealthyEndpoints = append(p.UnhealthyEndpoints, tailnetv1alpha1.UnhealthyEndpoint{Name: e.Name, Address: e.Address, EndpointPort: e.Port, Reason: e.Reason})
		}
		slices.SortFunc(p.UnhealthyEndpoints, func(a, b tailnetv1alpha1.UnhealthyEndpoint) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), cmp.Compare(a.EndpointPort, b.EndpointPort))
		})
		p.UnhealthyEndpoints = p.UnhealthyEndpoints[:min(len(p.UnhealthyEndpoints), maxUnhealthy)]
		out.Ports = append(out.Ports, p)
	}
	slices.SortFunc(out.Ports, func(a, b tailnetv1alpha1.HealthReportPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
	out.Ports = out.Ports[:min(len(out.Ports), maxPorts)]
	return out
}

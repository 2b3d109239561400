// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package report tells the Kubernetes API how the endpoints of our objects fare: one
// HealthReport an object that routes name, for functions to make status of. It is written
// when an endpoint becomes sick or well, by one replica. What makes it so is decided in
// package health.
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
	// maxSick endpoints of a port, and maxPorts of an object, are reported.
	maxSick  = 32
	maxPorts = 256
)

// An Object of ours that is reported of.
type Object struct {
	Kind ir.TargetKind
	types.NamespacedName
}

// ObjectOf a target.
func ObjectOf(k ir.TargetKey) Object {
	return Object{Kind: k.Kind, NamespacedName: types.NamespacedName{Namespace: k.Namespace, Name: k.Name}}
}

// kind in the API.
func (o Object) kind() string {
	if o.Kind == ir.TargetEndpoints {
		return "TailscaleEndpoints"
	}
	return "TailscaleServices"
}

// report is the name of its HealthReport.
func (o Object) report() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: names.HealthReport(o.kind(), o.Name)}
}

// objectOf a report. False if it is of nothing of ours, or not called as ours are.
func objectOf(r *tailnetv1alpha1.HealthReport) (Object, bool) {
	o := Object{Kind: ir.TargetServices, NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.For.Name}}
	if r.Spec.For.Kind == "TailscaleEndpoints" {
		o.Kind = ir.TargetEndpoints
	}
	return o, r.Name == o.report().Name
}

// maxReason of a failover, in bytes.
const maxReason = 256

// elsewhere reports whether a port has no local endpoint that answers.
func elsewhere(s *tailnetv1alpha1.HealthReportSpec) bool {
	return slices.ContainsFunc(s.Ports, func(p tailnetv1alpha1.HealthReportPort) bool { return p.Tier != tailnetv1alpha1.HealthTierLocal })
}

// failover of a report that takes another one's place at a time. Only a change of where
// requests go is one: an object that is reported of for the first time has had none.
func failover(was, is *tailnetv1alpha1.HealthReportSpec, at metav1.Time) *tailnetv1alpha1.HealthReportFailover {
	if was == nil {
		return nil
	}
	switch before, now := elsewhere(was), elsewhere(is); {
	case !before && now:
		return &tailnetv1alpha1.HealthReportFailover{Failover: at, Reason: reason(is)}
	case before && !now && was.Failover != nil:
		out := *was.Failover
		out.Failback = &at
		return &out
	}
	return was.Failover
}

// reason of a failover: that of the first sick endpoint of a port that has one.
func reason(s *tailnetv1alpha1.HealthReportSpec) string {
	for _, p := range s.Ports {
		if p.Tier != tailnetv1alpha1.HealthTierLocal && len(p.Sick) > 0 {
			out := fmt.Sprintf("%s at port %d: %s", p.Sick[0].Name, p.Port, cmp.Or(p.Sick[0].Reason, "does not answer"))
			return strings.ToValidUTF8(out[:min(len(out), maxReason)], "")
		}
	}
	return "no local endpoint is left"
}

// build the report of an object from its targets, of which there is one a port. It is
// pure, and in order.
func build(o Object, of []health.Target) tailnetv1alpha1.HealthReportSpec {
	out := tailnetv1alpha1.HealthReportSpec{For: tailnetv1alpha1.HealthReportTarget{Kind: o.kind(), Name: o.Name}}
	for _, t := range of {
		p := tailnetv1alpha1.HealthReportPort{Port: t.Key.Port, Protocol: string(t.Key.Protocol), Tier: tailnetv1alpha1.HealthTier(t.Tier)}
		for _, e := range t.Endpoints {
			p.Endpoints++
			if e.IsHealthy {
				p.Healthy++
				continue
			}
			p.Sick = append(p.Sick, tailnetv1alpha1.SickEndpoint{Name: e.Name, Address: e.Address, EndpointPort: e.Port, Reason: e.Reason})
		}
		slices.SortFunc(p.Sick, func(a, b tailnetv1alpha1.SickEndpoint) int {
			return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), cmp.Compare(a.EndpointPort, b.EndpointPort))
		})
		p.Sick = p.Sick[:min(len(p.Sick), maxSick)]
		out.Ports = append(out.Ports, p)
	}
	slices.SortFunc(out.Ports, func(a, b tailnetv1alpha1.HealthReportPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	})
	out.Ports = out.Ports[:min(len(out.Ports), maxPorts)]
	return out
}

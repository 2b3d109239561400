// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

// healthKey is the key of the requirement of a HealthReport.
const healthKey = "health"

// HealthRead reports whether Crossplane has read the requirement of Health.
func (r *Run) HealthRead() bool {
	_, ok := r.req.GetRequiredResources()[healthKey]
	return ok
}

// Health returns the health of the targets that Gateways reach through an object, as their
// extension reports it. It returns nil without a report: there may be no extension, or no route
// that names the object, so functions do not wait for it. The report changes only when an endpoint
// becomes healthy or unhealthy.
func (r *Run) Health(kind string, o Owner) (*tailnetv1alpha1.HealthReportSpec, error) {
	q := Requirement{
		Key:        healthKey,
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.HealthReportKind,
		Namespace:  o.Namespace,
		Name:       names.HealthReport(kind, o.Name),
	}
	found, _, err := Lookup[tailnetv1alpha1.HealthReport](r, q)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if s := found[0].Spec; s.TargetRef.Kind == kind && s.TargetRef.Name == o.Name {
		return &s, nil
	}
	return nil, nil
}

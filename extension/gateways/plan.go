// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"k8s.io/apimachinery/pkg/types"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/protect"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/report"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways/routes"
)

// An input holds all objects that concern one TailscaleGateway. The objects are read-only.
type input struct {
	routes.Input

	// guards are the policies that may protect backends, in any order. policiesKnown reports
	// that the list is complete.
	guards        []*protect.Guard
	policiesKnown bool

	// report is the existing report. Nil if there is none.
	report *tailnetv1alpha1.GatewayReport

	// extension is the part of the report about this extension.
	extension tailnetv1alpha1.ReportedExtension
}

// A result holds the desired objects.
type result struct {
	routes []*routes.Desired

	// content is what the report contains besides the desired routes.
	content report.Content
}

// report returns the report. Writes of desired routes may change them, and so the report.
func (r result) report() tailnetv1alpha1.GatewayReportSpec { return r.content.Spec(r.routes) }

// plan returns the desired objects for a TailscaleGateway with tailnets. The result does not
// depend on the order of the input.
func plan(inputs input) result {
	ls := routes.Listeners(inputs.Gateway, inputs.Sets)
	// Without permission the namespace must not see the routes of the Gateway.
	var userRoutes []*routes.Route
	if inputs.Granted() {
		userRoutes = routes.Accepted(inputs.Routes, ls)
	}
	return result{
		routes: routes.Plan(inputs.Input, ls, userRoutes),
		content: report.New(report.Facts{
			Object: inputs.Object, Granted: inputs.Granted(), Extension: inputs.extension,
			Routes: userRoutes, Permitted: inputs.Permitted,
			Protectors: inputs.protectors(userRoutes, ls), PoliciesKnown: inputs.policiesKnown,
			Previous: inputs.report,
		}),
	}
}

// protectors returns what protects the Services behind routes of users.
func (inputs input) protectors(userRoutes []*routes.Route, ls []routes.Listener) map[types.NamespacedName]string {
	f := protect.Facts{Gateway: inputs.Gateway, Sets: inputs.Sets, Guards: inputs.guards, Grants: inputs.Grants, Permitted: inputs.Permitted}
	return f.Protectors(userRoutes, ls)
}

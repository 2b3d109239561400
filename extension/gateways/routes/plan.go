// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package routes

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/extension/parse"
)

// Plan returns the desired routes of a TailscaleGateway with tailnets, beside the accepted routes of
// users at the listeners of its Gateway. The result does not depend on the order of the input.
func Plan(inputs Input, ls []Listener, userRoutes []*Route) []*Desired {
	var out []*Desired
	if inputs.Granted() {
		out = generated(inputs, userRoutes)
	}
	resolveConflicts(inputs, out, ls, userRoutes)
	existing := map[ID]client.Object{}
	for _, r := range inputs.Generated {
		existing[IDOf(r)] = r
	}
	for _, w := range out {
		if w.Generate = w.State == ""; w.Generate {
			w.State, w.Message = routeState(existing[w.ID()])
		}
	}
	return out
}

// generated returns the desired routes, in their order of precedence for hosts and paths.
func generated(inputs Input, userRoutes []*Route) []*Desired {
	var out []*Desired
	looping, refused := inputs.looping(), parse.RefusedTailnets(inputs.Object)
	for _, t := range inputs.Object.Spec.Tailnets {
		if refused[t.Name] {
			continue
		}
		endpoints := inputs.endpointsIn(t.Name)
		if g := t.RouteGeneration.Ingress; g != nil {
			out = append(out, ingress(inputs, t.Name, g, endpoints, userRoutes)...)
		}
		selectedRoutes := selected(inputs, t)
		out = append(out, selectedRoutes...)
		if generatesEgress(t) {
			out = append(out, egress(inputs, t, t.RouteGeneration.Egress, endpoints, exclusions{looping: looping, selectedRoutes: selectedRoutes})...)
		}
	}
	// Users choose the names of their devices: a device must not take the host and path of a
	// service.
	slices.SortStableFunc(out, func(a, b *Desired) int {
		switch {
		case a.device == b.device:
			return 0
		case a.device:
			return 1
		}
		return -1
	})
	return out
}

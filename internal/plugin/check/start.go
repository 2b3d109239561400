// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
)

// Kinds that Envoy Gateway watches for us. One configuration defines those of backends, so they were there together;
// the CRD of revisions comes with the extension's chart.
const (
	crdServices  = "tailscaleservices." + gatewayv1alpha1.Group
	crdEndpoints = "tailscaleendpoints." + gatewayv1alpha1.Group
	crdRevisions = "tailscalerevisions." + gatewayv1alpha1.Group
)

// A Route is a route with a backend of our kinds.
type Route struct {
	causes.Reference

	Created time.Time

	// References are the conditions ResolvedRefs of the route's parents.
	References []ResolvedReferences
}

// ResolvedReferences is what a controller says about the backends of a route.
type ResolvedReferences struct {
	// Controller is the name of the controller.
	Controller string

	Status, Reason, Message string

	// Current reports that the controller has seen the last change of the route.
	Current bool

	// Changed is when the status last changed.
	Changed time.Time
}

// NewerKinds returns the kinds of ours that are younger than the start of Envoy Gateway, in the order in which an
// installation creates them. It looks for kinds at its start.
func NewerKinds(f Facts) []string {
	started := f.Gateway.Started.Value
	if started.IsZero() {
		return nil
	}
	return slices.DeleteFunc([]string{crdServices, crdEndpoints, crdRevisions}, func(name string) bool {
		crd, ok := f.CRDs.Value[name]
		return !ok || !started.Before(crd.Created)
	})
}

// start checks that Envoy Gateway started after our kinds were there. An Envoy Gateway that watched the kinds before
// they were deleted and created again watches them still, which the statuses of routes show.
func start(f Facts, o Options) result {
	if f.Gateway.Started.Unknown != "" || f.CRDs.Unknown != "" {
		return unknown("whether Envoy Gateway started after our kinds", cmp.Or(f.Gateway.Started.Unknown, f.CRDs.Unknown))
	}
	newer := NewerKinds(f)
	if len(newer) == 0 {
		return right("start of Envoy Gateway")
	}
	restart := o.kubectl(fmt.Sprintf("rollout restart deployment/%s --namespace=%s", EnvoyGatewayDeployment, Quote(o.EnvoyGatewayNamespace)))
	sentence := func(name string) string {
		return fmt.Sprintf("Envoy Gateway started before the kind %s existed (%s, %s)", name,
			f.Gateway.Started.Value.UTC().Format("2006-01-02 15:04:05"), f.CRDs.Value[name].Created.UTC().Format("15:04:05"))
	}
	served, refused := statuses(f)
	if refused != "" {
		return wrong(sentence(newer[0])+": "+refused, "It looks for our kinds only at its start, and refuses routes to them.", restart)
	}
	if served != "" {
		newer = slices.DeleteFunc(newer, func(name string) bool { return name != crdRevisions })
	}
	if len(newer) == 0 {
		return right("start of Envoy Gateway")
	}
	proof := "No route shows whether it does."
	switch {
	case f.Gateway.Routes.Unknown != "":
		proof = "Routes, which you may not read, would show whether it does."
	case newer[0] == crdRevisions:
		proof = "Nothing shows whether it does."
	}
	return warning(sentence(newer[0]), "It looks for our kinds only at its start, unless it watched them before somebody deleted them. "+proof, restart)
}

// statuses returns a route whose status shows that Envoy Gateway watches our kinds, and what it says about one that it
// refuses. The second is empty if there is one of the first.
func statuses(f Facts) (served, refused string) {
	var created time.Time
	for _, name := range []string{crdServices, crdEndpoints} {
		if t := f.CRDs.Value[name].Created; t.After(created) {
			created = t
		}
	}
	controller := controllerName(f.Gateway.Config.Value)
	for _, r := range f.Gateway.Routes.Value {
		for _, s := range r.References {
			switch {
			case s.Controller != controller || !s.Current:
			case s.Status == "True" && (!r.Created.Before(created) || !s.Changed.Before(created)):
				return r.String(), ""
			case s.Status == "False" && (s.Reason == string(gwapiv1.RouteReasonBackendNotFound) || s.Reason == string(gwapiv1.RouteReasonInvalidKind)):
				refused = cmp.Or(refused, fmt.Sprintf("%s has no backend for it: %s", r, cmp.Or(s.Message, s.Reason)))
			}
		}
	}
	return "", refused
}

// controllerName returns the name of Envoy Gateway's controller, of its configuration.
func controllerName(config string) string {
	spec := egv1a1.EnvoyGatewaySpec{}
	if err := yaml.Unmarshal([]byte(config), &spec); err == nil && spec.Gateway != nil && spec.Gateway.ControllerName != "" {
		return spec.Gateway.ControllerName
	}
	return egv1a1.GatewayControllerName
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/extensionpods"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// installedOf returns the Deployments that are in the namespaces of Envoy Gateway, by namespace and
// name, and whether another one exists elsewhere.
func installedOf(found []appsv1.Deployment, namespaces []string) (installed []appsv1.Deployment, elsewhere bool) {
	for _, d := range found {
		switch {
		case d.GetDeletionTimestamp() != nil:
		case slices.Contains(namespaces, d.GetNamespace()):
			installed = append(installed, d)
		default:
			elsewhere = true
		}
	}
	slices.SortFunc(installed, func(a, b appsv1.Deployment) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return installed, elsewhere
}

// installedReady returns a condition that is True if the installed extension works. Which of
// several serves the Gateway is not known, so the condition names each that does not answer.
func installedReady(gp *gatewayPlan) compose.Condition {
	c := compose.Condition{Status: compose.False, Reason: meta.ReasonExtensionNotReady}
	for i := range gp.installed {
		if d := &gp.installed[i]; readyPods(d) == 0 {
			c.Message = fmt.Sprintf("0 of %d pods of Deployment %s/%s are ready: what was made stays, and changes of routes wait; see what kubectl describe says of them",
				wantedPods(d), d.GetNamespace(), d.GetName())
			return c
		}
	}
	switch {
	case len(gp.installed) == 0:
		c.Reason, c.Message = meta.ReasonNoExtension, withoutExtension(gp)
		if !gp.needsReport() {
			c.Reason = meta.ReasonExtensionNotNeeded
		}
		c.Message += "; install the chart " + extensionpods.Chart + " beside Envoy Gateway"
		if gp.elsewhere {
			c.Message += ". A Deployment with its labels is in none of Envoy Gateway's namespaces (" + compose.List(gp.envoyGateway...) +
				"), and does not count: if Envoy Gateway runs there, add the namespace to " + front.NamespacesValue
		}
		return c
	case !gp.needsReport():
		return compose.Condition{Status: compose.True, Reason: meta.ReasonExtensionServing, Message: "The extension is installed, and answers"}
	case gp.report == nil:
		return compose.Condition{Reason: compose.ReasonWaiting, Message: "Waiting for the extension to report of the Gateway, which it does unless its chart's value gateways is false"}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonExtensionReporting, Message: "The extension answers, and reports of the Gateway"}
}

// withoutExtension returns the consequence of a missing installed extension, for a message.
func withoutExtension(gp *gatewayPlan) string {
	switch {
	case !gp.needsReport():
		return "No extension is installed: nothing that is asked for here needs one, but routes that name Tailscale backends do"
	case gp.report != nil:
		return "No extension is installed any more: what was made stays, and nothing is added"
	}
	return "No extension reports of the Gateway, without which " + withoutReport(gp)
}

// wantedPods returns how many pods a Deployment should have.
func wantedPods(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) }

// readyPods returns how many of a Deployment's wanted pods are ready. A rollout has one more
// pod.
func readyPods(d *appsv1.Deployment) int32 { return min(d.Status.ReadyReplicas, wantedPods(d)) }

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// extensionChart is the chart of the extension that is installed for the cluster, and what
// its pods are called by.
const extensionChart = "tailscale-gateway-extension"

// requireInstalled are the Deployments of the chart, in any namespace, of which those beside
// Envoy Gateway count: labels anybody gives to Deployments of theirs. A Gateway's own are made by no Helm, so what
// happens to them runs nobody else's function.
func requireInstalled() compose.Requirement {
	return compose.Requirement{
		Key:        "extension",
		APIVersion: appsv1.SchemeGroupVersion.String(),
		Kind:       "Deployment",
		Labels:     map[string]string{"app.kubernetes.io/name": extensionChart, labelManagedBy: "Helm"},
	}
}

// wantsInstalled reports whether the extension that is installed for the cluster is to serve
// the Gateway. It knows TailscaleGateways with tailnets alone.
func (s *share) wantsInstalled() bool {
	return len(s.tailnets) > 0 && !s.step && s.xr.Spec.ExtensionServer == nil
}

// readInstalled finds the Deployments of the installed extension. It returns false while
// Crossplane has not looked.
func (s *share) readInstalled(r *compose.Run) (bool, error) {
	need := requireInstalled()
	r.Require(need)
	found, looked, err := compose.Required[appsv1.Deployment](r, need)
	for _, d := range found {
		switch {
		case d.GetDeletionTimestamp() != nil:
		case slices.Contains(s.envoyGateway, d.GetNamespace()):
			s.installed = append(s.installed, d)
		default:
			s.elsewhere = true
		}
	}
	slices.SortFunc(s.installed, func(a, b appsv1.Deployment) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return looked, err
}

// installedReady reports whether the installed extension does its work. Which of several
// serves the Gateway nobody knows, so one that does not answer is told.
func (s *share) installedReady() compose.Condition {
	c := compose.Condition{Status: compose.False, Reason: meta.ReasonExtensionNotReady}
	for i := range s.installed {
		if d := &s.installed[i]; readyPods(d) == 0 {
			c.Message = fmt.Sprintf("0 of %d pods of Deployment %s/%s are ready: what was made stays, and changes of routes wait; see what kubectl describe says of them",
				wantedPods(d), d.GetNamespace(), d.GetName())
			return c
		}
	}
	switch {
	case len(s.installed) == 0:
		c.Reason, c.Message = meta.ReasonNoExtension, s.withoutExtension()+"; install the chart "+extensionChart+" beside Envoy Gateway"
		if s.elsewhere {
			c.Message += ". A Deployment with its labels is in none of Envoy Gateway's namespaces (" + compose.List(s.envoyGateway...) +
				"), and does not count: if Envoy Gateway runs there, set ENVOY_GATEWAY_NAMESPACES of the function"
		}
		return c
	case !s.needsReport():
		return compose.Condition{Status: compose.True, Reason: meta.ReasonExtensionServes, Message: "The extension is installed, and answers"}
	case s.report == nil:
		return compose.Condition{Reason: compose.ReasonWaiting, Message: "Waiting for the extension to report of the Gateway, which it does unless its chart's value gateways is false"}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonExtensionReports, Message: "The extension answers, and reports of the Gateway"}
}

// withoutExtension is what comes of it that none is installed.
func (s *share) withoutExtension() string {
	switch {
	case !s.needsReport():
		return "No extension is installed: nothing that is asked for here needs one, but routes that name Tailscale backends do"
	case s.report != nil:
		return "No extension is installed any more: what was made stays, and nothing is added"
	}
	return "No extension reports of the Gateway, without which " + s.withoutReport()
}

// wantedPods of a Deployment, and readyPods of those: a rollout has one more.
func wantedPods(d *appsv1.Deployment) int32 { return ptr.Deref(d.Spec.Replicas, 1) }

func readyPods(d *appsv1.Deployment) int32 { return min(d.Status.ReadyReplicas, wantedPods(d)) }

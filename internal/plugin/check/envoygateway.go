// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// Names in Envoy Gateway's own chart.
const (
	// EnvoyGatewayDeployment is the Deployment of Envoy Gateway.
	EnvoyGatewayDeployment = "envoy-gateway"

	// EnvoyGatewayConfigMap has the configuration of Envoy Gateway.
	EnvoyGatewayConfigMap = "envoy-gateway-config"
)

// routed reports whether Envoy Gateway and the extension are checked.
func routed(f Facts, o Options) bool {
	switch o.EnvoyGateway {
	case Require:
		return true
	case Skip:
		return false
	}
	return f.Gateway.Extension.Value != nil || f.Gateway.Extension.Unknown != "" && f.Gateway.EnvoyGateway.Value != nil
}

const notRouted = "Envoy Gateway"

func extension(f Facts, o Options) result {
	g := f.Gateway
	switch {
	case !routed(f, o):
		reason := notRouted
		if o.EnvoyGateway == Auto {
			reason += fmt.Sprintf(" (namespace %s has no extension; --envoy-gateway=require looks for what is missing)", o.ExtensionNamespace)
		}
		return skip(reason)
	case g.Extension.Unknown != "" || g.EnvoyGateway.Unknown != "":
		return unknown("whether Envoy Gateway and the extension run", g.Extension.Unknown+g.EnvoyGateway.Unknown)
	case g.Extension.Value == nil:
		return wrong(fmt.Sprintf("The extension is not installed: there is no Deployment %s/%s", o.ExtensionNamespace, charts.Extension),
			"Envoy Gateway serves no route to our kinds without it.", o.ours(f, charts.Extension, "--create-namespace"))
	case g.EnvoyGateway.Value == nil:
		return wrong(fmt.Sprintf("Envoy Gateway is not installed: there is no Deployment %s/%s", o.EnvoyGatewayNamespace, EnvoyGatewayDeployment),
			"If it is in another namespace, name that by --envoy-gateway-namespace.", o.envoyGateway(f))
	}
	v := Version(g.EnvoyGateway.Value)
	if older(v, minEnvoyGateway) {
		return wrong(fmt.Sprintf("Envoy Gateway is %s, which is older than %s", v, minEnvoyGateway), "", "upgrade Envoy Gateway by its chart, with our values")
	}
	return right(strings.TrimSpace("Envoy Gateway " + v))
}

// routeKinds checks that the API server knows each kind that the extension watches. The extension starts without
// them, but Envoy Gateway looks for ours only at its start.
func routeKinds(f Facts, o Options) result {
	if f.Served.Unknown != "" {
		return unknown("whether the API server knows the kinds of routes", f.Served.Unknown)
	}
	rules, err := parseRules(charts.ExtensionRules)
	if err != nil {
		return broken(err)
	}
	missing := map[string][]string{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, res := range rule.Resources {
				if strings.Contains(res, "/") || f.Served.Value[group+"/"+res] {
					continue
				}
				fix := o.ours(f, charts.Install, "")
				switch {
				case group == gatewayv1alpha1.Group && (slices.Contains(rule.Verbs, "create") || res == "tailscaleroutepolicies"):
					fix = o.ours(f, charts.Extension, "--set=crds.enabled=true")
				case group == "gateway.networking.k8s.io" || group == "gateway.envoyproxy.io":
					fix = o.envoyGateway(f)
				}
				missing[fix] = append(missing[fix], resource(authv1.ResourceAttributes{Group: group, Resource: res}))
			}
		}
	}
	out := result{summary: "kinds of routes"}
	for _, fix := range sorted(missing) {
		out.findings = append(out.findings, Finding{Status: Wrong, Summary: "The API server does not know " + listed(missing[fix]), Fix: fix})
	}
	return out
}

func routeRoles(f Facts, o Options) result {
	out := permitted(f, []string{nameEnvoyGateway, nameExtension}, "Neither becomes ready without them.", o.ours(f, charts.Extension, ""))
	out.summary = "roles of the extension"
	return out
}

// describePods returns the command that shows the pods of a Deployment: of those that are not ready, kubectl says why.
func (o Options) describePods(d *appsv1.Deployment) string {
	return o.kubectl(fmt.Sprintf("describe pods --namespace=%s --selector=%s", Quote(d.GetNamespace()), Quote(metav1.FormatLabelSelector(d.Spec.Selector))))
}

func ready(f Facts, o Options) result {
	out := result{summary: "pods of the extension and of Envoy Gateway"}
	for _, d := range []*appsv1.Deployment{f.Gateway.Extension.Value, f.Gateway.EnvoyGateway.Value} {
		if d == nil || available(d) {
			continue
		}
		return wrong(fmt.Sprintf("Deployment %s/%s has %d of %d pods that are ready", d.GetNamespace(), d.GetName(), d.Status.AvailableReplicas, desired(d)), "", o.describePods(d))
	}
	return out
}

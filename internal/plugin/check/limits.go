// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
)

// A Limit is what a Usage counts.
type Limit string

// Limits of which the objects of a cluster show how much is used. Others, such as the number of devices that a plan of
// Tailscale allows, are known to Tailscale alone.
const (
	LimitTargets         Limit = "Targets"
	LimitDiscovered      Limit = "Discovered"
	LimitListed          Limit = "Listed"
	LimitGatewayServices Limit = "GatewayServices"
	LimitHostnames       Limit = "Hostnames"
	LimitRoutes          Limit = "Routes"
	LimitGeneratedRoutes Limit = "GeneratedRoutes"
	LimitCertificates    Limit = "Certificates"
	LimitNewCertificates Limit = "NewCertificates"
)

// A Usage is how much of a limit an object uses. A tailnet is named by its domain.
type Usage struct {
	Object string
	Limit  Limit
	Count  int
}

// A limitDefinition is a limit of docs/limits.md.
type limitDefinition struct {
	limit Limit
	most  int

	// noun is what is counted.
	noun string

	impact, fix string
}

const newcomers = "Beyond it, all that serves stays, and newcomers get no place."

func limitDefinitions() []limitDefinition {
	return []limitDefinition{
		{limit: LimitTargets, most: 2048, noun: "targets", impact: newcomers, fix: "name further targets in another TailscaleEndpoints"},
		{limit: LimitDiscovered, most: 512, noun: "discovered devices and services", impact: newcomers, fix: "narrow the discovery by tags or names, or split it over several objects"},
		{limit: LimitListed, most: 100, noun: "discovered services", impact: "Its status lists no more.", fix: "narrow serviceDiscovery by tags or names"},
		{limit: LimitGatewayServices, most: 1000, noun: "Tailscale Services", impact: newcomers, fix: "split the routes over several Gateways, each with its TailscaleGateway"},
		{limit: LimitHostnames, most: 256, noun: "hostnames that a tailnet resolves", impact: newcomers, fix: "set domains of splitDNS, which stand for all hostnames below them"},
		{limit: LimitRoutes, most: 2048, noun: "routes in its report", impact: newcomers, fix: "split the routes over several Gateways, each with its TailscaleGateway"},
		{limit: LimitGeneratedRoutes, most: 2048, noun: "generated routes in its report", impact: newcomers, fix: "narrow serviceDiscovery, or split it over several TailscaleGateways"},
		{limit: LimitCertificates, most: 150, noun: "names with a certificate of Tailscale, which share one Secret", impact: "Further services wait for theirs when the Secret is full.", fix: "serve further services by another TailscaleEndpoints"},
		{limit: LimitNewCertificates, most: 50, noun: "names with a certificate of Tailscale that are new within a week", impact: "Let's Encrypt refuses more until a week has passed.", fix: "keep services and namespaces instead of creating them again, or use a certificate of yours: docs/limits.md, Certificates"},
	}
}

// A limit is near when nearParts of nearOf are used.
const (
	nearParts = 4
	nearOf    = 5
)

// limits warns of objects that are near a limit. The fullest is named first.
func limits(f Facts, _ Options) result {
	if f.Usages.Unknown != "" {
		return unknown("how near objects are to limits", f.Usages.Unknown)
	}
	out := result{summary: "limits"}
	for _, d := range limitDefinitions() {
		near := slices.DeleteFunc(slices.Clone(f.Usages.Value), func(u Usage) bool { return u.Limit != d.limit || u.Count*nearOf < d.most*nearParts })
		slices.SortFunc(near, func(a, b Usage) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Object, b.Object)) })
		var objects []string
		for _, u := range near {
			objects = append(objects, fmt.Sprintf("%s has %d", u.Object, u.Count))
		}
		if len(objects) > 0 {
			out.findings = append(out.findings, Finding{
				Status: Warning, Summary: fmt.Sprintf("The limit of %d %s is near: %s", d.most, d.noun, listed(objects)), Impact: d.impact, Fix: d.fix,
			})
		}
	}
	return out
}

// GatewayServices returns the number of Tailscale Services of each TailscaleGateway.
func GatewayServices(objects []causes.Object) []Usage {
	counts := map[string]int{}
	for _, o := range objects {
		if o.Kind == "TailscaleServices" && o.Owner.Kind == "TailscaleGateway" {
			counts[o.Owner.String()]++
		}
	}
	var out []Usage
	for _, name := range sorted(counts) {
		out = append(out, Usage{Object: name, Limit: LimitGatewayServices, Count: counts[name]})
	}
	return out
}

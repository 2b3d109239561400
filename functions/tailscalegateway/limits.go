// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"fmt"
	"strings"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/quota"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// fullServices returns why a service is omitted.
func fullServices() string {
	return fmt.Sprintf("A TailscaleGateway has no more than %d services, of which those of one namespace get three quarters; split its routes over several Gateways", maxServices)
}

// limitServices omits the services that exceed the maximum. Existing ones stay.
func limitServices(gp *gatewayPlan, services []*service) {
	var wanted []*service
	for _, v := range services {
		if v.omitted == "" && (v.mistake == "" || v.observed != nil) {
			wanted = append(wanted, v)
			v.full = true
		}
	}
	requests := gp.serviceRequests()
	admitted, _ := quota.Admit(maxServices, wanted, func(v *service) quota.Request {
		c := requests[v.target]
		c.Allocated = held(v.observed != nil)
		return c
	})
	for _, v := range admitted {
		v.full = false
	}
	for _, v := range wanted {
		if v.full {
			v.omitted = fullServices()
		}
	}
}

// held returns the held part of a request whose cost is one.
func held(serves bool) int {
	if serves {
		return 1
	}
	return 0
}

// serviceRequests returns the requests of routes and of the Services behind them, by their service's
// target. The Gateway's own services belong to the TailscaleGateway.
func (gp *gatewayPlan) serviceRequests() map[string]quota.Request {
	out := map[string]quota.Request{}
	if gp.report == nil {
		return out
	}
	for _, r := range gp.report.Routes {
		c := requestOf(r)
		out[routeTarget(r)] = c
		for _, b := range r.Backends {
			older(out, backendTarget(b), c)
		}
	}
	return out
}

// requestOf returns the request of a route.
func requestOf(r tailnetv1alpha1.ReportedRoute) quota.Request {
	c := quota.Request{Owner: r.Namespace, UID: cmp.Or(r.UID, routeTarget(r))}
	if r.Created != nil {
		c.Created = r.Created.Time
	}
	return c
}

// older sets a request, unless there is an older one.
func older(requests map[string]quota.Request, key string, c quota.Request) {
	existing, ok := requests[key]
	if !ok || cmp.Or(c.Created.Compare(existing.Created), cmp.Compare(c.UID, existing.UID)) < 0 {
		requests[key] = c
	}
}

// hostnameRequests returns the requests of the hostnames of routes, each by the oldest route that has
// it. Other names are of the TailscaleGateway or of the Gateway.
func (gp *gatewayPlan) hostnameRequests() map[string]quota.Request {
	out := map[string]quota.Request{}
	if gp.report == nil {
		return out
	}
	for _, r := range gp.report.Routes {
		for _, h := range r.Hostnames {
			older(out, strings.ToLower(h), requestOf(r))
		}
	}
	return out
}

// limit returns the domains within the maximum, and limits the zone's names. The ones that are
// resolved stay.
func (v *tailnetZone) limit(domains []string, requests map[string]quota.Request) []string {
	previous := v.observedZone()
	resolved, existing := map[string]bool{}, map[string]bool{}
	for _, n := range previous.Names {
		resolved[n.Name] = true
	}
	for _, d := range previous.Domains {
		existing[d.Name] = true
	}
	names, omitted := quota.Admit(maxNames, v.zone.Names, func(n zone.Name) quota.Request {
		c := requests[n.Name]
		c.Allocated = held(resolved[n.Name])
		return c
	})
	v.zone.Names, v.full = names, omitted > 0
	domains, omitted = quota.Admit(maxDomains, domains, func(d string) quota.Request {
		c := requests[d]
		c.Allocated = held(existing[d])
		return c
	})
	v.full = v.full || omitted > 0
	return domains
}

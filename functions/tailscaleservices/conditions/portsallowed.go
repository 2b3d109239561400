// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"slices"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	rules "github.com/tailscale-gateway/tailscale-gateway/internal/service"
)

// portsAllowed returns the condition PortsAllowed.
func portsAllowed(f Facts) compose.Condition {
	c := compose.Condition{Type: meta.TypePortsAllowed, Status: compose.False}
	var refused, unchanged, retained []string
	for _, p := range f.Selection.Hosting() {
		if !selection.HasIngress(p) {
			continue
		}
		missing := f.Selection.MissingPorts(p)
		switch tolerated := slices.DeleteFunc(f.Selection.WantedPorts(), func(port int32) bool { return selection.Allows(p.Spec.IngressPorts, port) }); {
		case len(missing) > 0 && f.HostsBefore(p):
			unchanged = append(unchanged, lack(f, p, missing))
		case len(missing) > 0:
			refused = append(refused, lack(f, p, missing))
		case len(tolerated) > 0:
			retained = append(retained, lack(f, p, tolerated))
		}
	}
	remedy := "add the port there, or remove it from spec.vipService.ports"
	if rules.AllPorts(f.Selection.Spec) {
		remedy = "remove the list, or name ports in spec.vipService.ports"
	}
	switch {
	case len(refused) > 0:
		c.Reason, c.Message = meta.ReasonPortsNotAllowed, fmt.Sprintf("%s is not hosted where a port is missing: %s; %s", f.ServiceName, compose.List(refused...), remedy)
	case len(unchanged) > 0:
		c.Reason, c.Message = meta.ReasonPortsNotAllowed, fmt.Sprintf("%s stays as it was where a port is missing: %s; %s", f.ServiceName, compose.List(unchanged...), remedy)
	case len(retained) > 0:
		c.Reason, c.Message = meta.ReasonPortsKept, fmt.Sprintf("%s is hosted where a port is missing, until the list changes: %s; %s", f.ServiceName, compose.List(retained...), remedy)
	default:
		c.Status, c.Reason = compose.True, meta.ReasonPortsAllowed
		c.Message = fmt.Sprintf("The selected TailscaleEndpoints allow all ports of %s", f.ServiceName)
	}
	return c
}

// lack describes the list that lacks ports, for a message.
func lack(f Facts, p tailnetv1alpha1.ProxySet, missing []int32) string {
	field := fmt.Sprintf("spec.ports of TailscaleEndpoints %s", p.Spec.Endpoints)
	if f.Selection.Provision && p.Spec.Endpoints == selection.TemplateName(f.Selection.Owner) {
		field = "spec.endpointTemplate.ports"
	}
	if slices.Contains(missing, rules.PortAll) {
		return fmt.Sprintf("%s lists single ports, and the service has all", field)
	}
	names := make([]string, len(missing))
	for i, port := range missing {
		names[i] = string(tailnetv1alpha1.ServicePortOf(port))
	}
	return fmt.Sprintf("%s lacks %s", field, compose.List(names...))
}

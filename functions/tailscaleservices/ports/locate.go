// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/grants"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// protocolUDP is the protocol of listeners for which a Tailscale Service has no port.
const protocolUDP = "UDP"

// locate sets where proxies reach the backends of each port.
func locate(f Facts, ports []Assignment) *SpecError {
	for i := range ports {
		a := &ports[i]
		var err *SpecError
		if a.Address, err = locateBackend(f, a.Backend, a.Port); err != nil {
			return err
		}
		for j := range a.Shares {
			sh := &a.Shares[j]
			if sh.Address, err = locateBackend(f, sh.Backend, a.Port); err != nil {
				return err
			}
		}
	}
	return nil
}

// locateBackend returns where proxies reach a backend of a port.
func locateBackend(f Facts, b gatewayv1alpha1.Backend, port int32) (tailnetv1alpha1.AttachmentBackend, *SpecError) {
	switch b.Kind {
	case gatewayv1alpha1.BackendKindExternal:
		return tailnetv1alpha1.AttachmentBackend{Host: b.Host, Port: b.Port}, checkHost(f, b)
	case gatewayv1alpha1.BackendKindGateway:
		return locateGateway(f, b, cmp.Or(b.Port, port))
	case gatewayv1alpha1.BackendKindService:
		fallthrough
	default:
		return tailnetv1alpha1.AttachmentBackend{Host: address.ServiceHost(f.Owner.Namespace, b.Name), Port: b.Port}, nil
	}
}

// locateGateway returns the port of one of a Gateway's listeners.
func locateGateway(f Facts, b gatewayv1alpha1.Backend, port int32) (tailnetv1alpha1.AttachmentBackend, *SpecError) {
	none := tailnetv1alpha1.AttachmentBackend{}
	if b.Host != "" {
		return tailnetv1alpha1.AttachmentBackend{Host: b.Host, Port: port}, checkHost(f, b)
	}
	g := f.Gateways[b.Name]
	if g == nil {
		return none, &SpecError{
			Reason:  meta.ReasonGatewayNotFound,
			Message: fmt.Sprintf("there is no TailscaleGateway %q in namespace %q; create it, or correct the backend's name", b.Name, f.Owner.Namespace),
		}
	}
	found := g.Status.Gateway
	if found == nil {
		// The TailscaleGateway's condition has the reason. Its message changes while a Gateway
		// starts, so it is not repeated here.
		return none, &SpecError{
			Reason:  meta.ReasonGatewayNotValid,
			Message: fmt.Sprintf("TailscaleGateway %q has not found its Gateway's Service; see its condition %s", b.Name, meta.TypeGatewayValid),
		}
	}
	if !slices.ContainsFunc(found.Listeners, func(l gatewayv1alpha1.GatewayListener) bool { return listens(l, port) }) {
		return none, invalidBackends("TailscaleGateway %q has no listener at port %d%s; add one to its Gateway, or correct the backend's port", b.Name, port, others(found.Listeners))
	}
	return tailnetv1alpha1.AttachmentBackend{Host: address.ServiceHost(found.Service.Namespace, found.Service.Name), Port: port}, nil
}

// listens reports whether a listener serves a port by TCP.
func listens(l gatewayv1alpha1.GatewayListener, port int32) bool {
	return l.Port == port && l.Protocol != protocolUDP
}

// others returns the existing ports, for a message.
func others(listeners []gatewayv1alpha1.GatewayListener) string {
	var ports []int32
	for _, l := range listeners {
		if listens(l, l.Port) {
			ports = append(ports, l.Port)
		}
	}
	if len(ports) == 0 {
		return ""
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = strconv.Itoa(int(p))
	}
	return ", only at " + strings.Join(names, ", ")
}

// Remote reports whether other clusters may take over at a port. They may not at a Gateway's port:
// requests could loop between clusters. The backends of the Gateway's routes have separate
// clusters.
func (a Assignment) Remote() bool {
	return a.Backend.Kind != gatewayv1alpha1.BackendKindGateway &&
		!slices.ContainsFunc(a.Shares, func(s Share) bool { return s.Backend.Kind == gatewayv1alpha1.BackendKindGateway })
}

// RemotePorts returns the ports at which other clusters may take over.
func RemotePorts(ports []Assignment) []tailnetv1alpha1.AttachmentPort {
	var out []tailnetv1alpha1.AttachmentPort
	for _, a := range ports {
		if a.Remote() {
			out = append(out, tailnetv1alpha1.AttachmentPort{Port: a.Port})
		}
	}
	return out
}

// checkHost returns an error if proxies may not connect to the host of a backend.
func checkHost(f Facts, b gatewayv1alpha1.Backend) *SpecError {
	n, _ := refgrant.ServiceOf(b.Host)
	switch f.Permissions.Host(b.Host) {
	case grants.Permitted:
		return nil
	case grants.Lost:
		return &SpecError{Reason: meta.ReasonGatewayNotValid, Message: fmt.Sprintf(
			"host %s of backend %q is of Service %s, which does not exist; look at the conditions of the TailscaleGateway", b.Host, b.Name, n)}
	}
	return &SpecError{Reason: meta.ReasonRefNotPermitted, Message: fmt.Sprintf(
		"host %s of backend %q is of Service %s, and no ReferenceGrant in namespace %s permits it; create one there, from group %s, kind %s, namespace %s, to group \"\", kind Service, name %s",
		b.Host, b.Name, n, n.Namespace, gatewayv1alpha1.Group, gatewayv1alpha1.TailscaleServicesKind, f.Owner.Namespace, n.Name)}
}

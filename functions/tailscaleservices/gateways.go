// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// protocolUDP is the protocol of listeners for which a Tailscale Service has no port.
const protocolUDP = "UDP"

// locate sets where proxies reach the backends of each port.
func (f facts) locate(ports []assignment) *specError {
	for i := range ports {
		a := &ports[i]
		var err *specError
		if a.address, err = f.locateBackend(a.backend, a.port); err != nil {
			return err
		}
		for j := range a.shares {
			sh := &a.shares[j]
			if sh.address, err = f.locateBackend(sh.backend, a.port); err != nil {
				return err
			}
		}
	}
	return nil
}

// locateBackend returns where proxies reach a backend of a port.
func (f facts) locateBackend(b gatewayv1alpha1.Backend, port int32) (tailnetv1alpha1.AttachmentBackend, *specError) {
	switch b.Kind {
	case gatewayv1alpha1.BackendKindExternal:
		return tailnetv1alpha1.AttachmentBackend{Host: b.Host, Port: b.Port}, f.checkHost(b)
	case gatewayv1alpha1.BackendKindGateway:
		return f.locateGateway(b, cmp.Or(b.Port, port))
	case gatewayv1alpha1.BackendKindService:
		fallthrough
	default:
		return tailnetv1alpha1.AttachmentBackend{Host: serviceHost(f.owner.Namespace, b.Name), Port: b.Port}, nil
	}
}

// serviceHost returns the host of a Service without the cluster's domain, which a pod's search
// list adds.
func serviceHost(namespace, name string) string { return name + "." + namespace + ".svc" }

// locateGateway returns the port of one of a Gateway's listeners.
func (f facts) locateGateway(b gatewayv1alpha1.Backend, port int32) (tailnetv1alpha1.AttachmentBackend, *specError) {
	none := tailnetv1alpha1.AttachmentBackend{}
	if b.Host != "" {
		return tailnetv1alpha1.AttachmentBackend{Host: b.Host, Port: port}, f.checkHost(b)
	}
	g := f.gateways[b.Name]
	if g == nil {
		return none, &specError{
			reason:  meta.ReasonGatewayNotFound,
			message: fmt.Sprintf("there is no TailscaleGateway %q in namespace %q; create it, or correct the backend's name", b.Name, f.owner.Namespace),
		}
	}
	found := g.Status.Gateway
	if found == nil {
		// The TailscaleGateway's condition has the reason. Its message changes while a Gateway
		// starts, so it is not repeated here.
		return none, &specError{
			reason:  meta.ReasonGatewayNotValid,
			message: fmt.Sprintf("TailscaleGateway %q has not found its Gateway's Service; see its condition %s", b.Name, meta.TypeGatewayValid),
		}
	}
	if !slices.ContainsFunc(found.Listeners, func(l gatewayv1alpha1.GatewayListener) bool { return listens(l, port) }) {
		return none, invalidBackends("TailscaleGateway %q has no listener at port %d%s; add one to its Gateway, or correct the backend's port", b.Name, port, others(found.Listeners))
	}
	return tailnetv1alpha1.AttachmentBackend{Host: serviceHost(found.Service.Namespace, found.Service.Name), Port: port}, nil
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

// remote reports whether other clusters may take over at a port. They may not at a Gateway's port:
// requests could loop between clusters. The backends of the Gateway's routes have separate
// clusters.
func (a assignment) remote() bool {
	return a.backend.Kind != gatewayv1alpha1.BackendKindGateway &&
		!slices.ContainsFunc(a.shares, func(s share) bool { return s.backend.Kind == gatewayv1alpha1.BackendKindGateway })
}

// recordPorts returns the ports of this cluster's own service, if they are not all ports of the
// shared one: its proxies serve those at which other clusters may take over.
func (s *service) recordPorts() []tailnetv1alpha1.ServicePort {
	remote := s.remotePorts()
	if !s.shared() || len(remote) == len(s.ports) {
		return nil
	}
	var out []tailnetv1alpha1.ServicePort
	for _, p := range remote {
		out = append(out, tailnetv1alpha1.ServicePort(fmt.Sprintf("tcp:%d", p.Port)))
	}
	return out
}

// remotePorts returns the ports at which other clusters may take over.
func (s *service) remotePorts() []tailnetv1alpha1.AttachmentPort {
	var out []tailnetv1alpha1.AttachmentPort
	for _, a := range s.ports {
		if a.remote() {
			out = append(out, tailnetv1alpha1.AttachmentPort{Port: a.port})
		}
	}
	return out
}

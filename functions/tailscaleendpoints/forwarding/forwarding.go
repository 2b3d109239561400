// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package forwarding plans which port of the egress proxies of a TailscaleEndpoints leads to which target, and
// says which targets they reach.
package forwarding

import (
	"fmt"
	"slices"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/proxies"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/targets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Messages for targets on which no proxy can report.
const (
	messageNoProxies = "The target is in the tailnet; set spec.proxy.connectionType to egress or bidirectional"
	messageNoPort    = "No port of the egress proxies is free; remove a target, or make another TailscaleEndpoints for some"
	messageNoReport  = "Waiting for the egress proxies to report it"
)

// Facts are what a plan follows from.
type Facts struct {
	Targets targets.Targets

	// Proxies are the egress proxies.
	Proxies *proxies.Group

	// Kernel reports whether they use the kernel's networking.
	Kernel bool

	// Config is the data of their ConfigMap. It is nil if there is none.
	Config map[string]string
}

// A Plan maps the ports of the egress proxies to targets.
type Plan struct {
	Facts

	// Data is the data of the ConfigMap.
	Data map[string]string

	// AcceptRoutes reports whether the egress machines use subnet routers.
	AcceptRoutes bool

	// full is the reason why some targets have no port. It is nil if all have one.
	full error
}

// New returns the targets with their ports. A target that needs a proxy and has none has no port.
func New(f Facts) (Plan, error) {
	p := Plan{Facts: f, Data: f.Config, AcceptRoutes: !f.Kernel}
	var wanted []egress.Target
	for _, t := range f.Targets.Proxied() {
		wanted = append(wanted, t.Target)
		// The pod uses the same routes of the kernel: a route of the tailnet could replace one of
		// the cluster.
		p.AcceptRoutes = p.AcceptRoutes || t.Routed()
	}
	if !f.Proxies.Wants {
		// Pods that are about to be removed keep their ports.
		return p, nil
	}

	// A config that cannot be decoded is treated like a lost one: the ports are derived from pods
	// and hashes.
	previous, err := egress.Decode(f.Config[egress.ConfigMapKey])
	if err != nil {
		previous = egress.Config{}
	}
	config, full := egress.Allocate(previous, wanted, f.Proxies.Reports(f.Config[egress.ConfigMapKey]))
	p.full = full
	encoded, err := config.Encode()
	if err != nil {
		return Plan{}, err
	}
	p.Data = map[string]string{egress.ConfigMapKey: encoded}
	ports := make(map[string]int32, len(config.Targets))
	for _, t := range config.Targets {
		ports[t.Key] = t.ProxyPort
	}
	p.Targets.All = slices.Clone(f.Targets.All)
	for i, t := range p.Targets.All {
		p.Targets.All[i].ProxyPort = ports[t.Key]
	}
	return p, nil
}

// IsReported reports whether there is something to say about targets that need a proxy.
func (p Plan) IsReported() bool {
	t := p.Targets
	return len(t.Proxied())+len(t.Refused)+len(t.Portless)+len(t.Unplaced()) > 0
}

// ProxySetTargets returns the targets that other objects can use, by a port of the proxies or
// directly.
func (p Plan) ProxySetTargets() []tailnetv1alpha1.ProxySetTarget {
	var out []tailnetv1alpha1.ProxySetTarget
	for _, t := range p.Targets.All {
		pt := tailnetv1alpha1.ProxySetTarget{Name: t.Label, Port: t.ClientPort, Protocol: string(t.Speaks), Weight: t.Weight}
		switch {
		case t.Direct:
			pt.Address = t.Address()
		case t.ProxyPort != 0:
			pt.ProxyPort = t.ProxyPort
		default:
			continue
		}
		out = append(out, pt)
	}
	return out
}

// ServicePorts returns the ports of the endpoints' Services, by endpoint.
func (p Plan) ServicePorts() map[string][]proxy.TargetPort {
	out := map[string][]proxy.TargetPort{}
	for _, t := range p.Targets.All {
		if t.Endpoint == "" || t.ProxyPort == 0 {
			continue
		}
		out[t.Endpoint] = append(out[t.Endpoint], proxy.TargetPort{
			Name:        t.PortName,
			Port:        t.ClientPort,
			ProxyPort:   t.ProxyPort,
			Protocol:    t.Protocol,
			AppProtocol: appProtocol(t.Speaks),
			SingleStack: t.SingleStack,
		})
	}
	return out
}

// appProtocol returns the name of a protocol in Gateway API and service meshes.
func appProtocol(p gatewayv1alpha1.EndpointProtocol) string {
	return map[gatewayv1alpha1.EndpointProtocol]string{
		gatewayv1alpha1.EndpointProtocolTCP:   "tcp",
		gatewayv1alpha1.EndpointProtocolHTTP:  "http",
		gatewayv1alpha1.EndpointProtocolHTTPS: "https",
		gatewayv1alpha1.EndpointProtocolGRPC:  "kubernetes.io/h2c",
		gatewayv1alpha1.EndpointProtocolTLS:   "tls",
	}[p]
}

// Status returns the targets for the status. The names are those of the endpoints' Services.
func (p Plan) Status(serviceNames map[string]string) []gatewayv1alpha1.EgressTargetStatus {
	var out []gatewayv1alpha1.EgressTargetStatus
	for _, t := range p.Targets.Proxied() {
		s := gatewayv1alpha1.EgressTargetStatus{Name: t.Label, Address: t.Address(), TailscaleFQDN: t.Name, Protocol: t.Speaks, ProxyPort: t.ProxyPort}
		if t.Endpoint != "" && t.ProxyPort != 0 {
			s.Service = fmt.Sprintf("%s:%d", serviceNames[t.Endpoint], t.ClientPort)
		}
		s.ReadyProxies, s.Message = p.reach(t)
		out = append(out, s)
	}
	return out
}

// reach returns the number of proxies that reach a target, and the message of the first proxy that
// does not. If all reach it, the message is the first message of any proxy.
func (p Plan) reach(t targets.Target) (ready int32, message string) {
	switch {
	case !p.Proxies.Wants:
		return 0, messageNoProxies
	case t.ProxyPort == 0:
		return 0, messageNoPort
	}
	if port, ok := p.Proxies.Ports[portOf(t)]; ok {
		ready, message = port.ReadyMachines, port.Message
	}
	if message == "" && ready < p.Proxies.Count {
		message = messageNoReport
	}
	return ready, message
}

// portOf returns the port of a target as proxies report it.
func portOf(t targets.Target) proxies.ReportedPort {
	return proxies.ReportedPort{Port: t.ProxyPort, Protocol: t.Protocol, Target: t.Key}
}

// Condition returns the condition EgressReady. Problems that the user can fix come first. A target is
// healthy if at least one proxy reaches it: the status counts the proxies.
func (p Plan) Condition() compose.Condition {
	c := compose.Condition{Type: meta.TypeEgressReady, Status: compose.False}
	var all, unreached []string
	waiting, first, remark, remarked := !p.Proxies.PodsReady(), "", "", meta.ReasonNameMismatch
	for _, t := range p.Targets.Proxied() {
		all = append(all, t.Label)
		ready, m := p.reach(t)
		if ready > 0 {
			if m != "" && remark == "" && ready == p.Proxies.Count {
				remark = t.Label + ": " + m
				if t.Name == "" {
					remarked = meta.ReasonFamilyNotServed
				}
			}
			continue
		}
		unreached = append(unreached, t.Label)
		waiting = waiting || m == messageNoReport
		if first == "" {
			first = t.Label + ": " + m
		}
	}
	unplaced := p.Targets.Unplaced()
	switch {
	case !p.Proxies.Wants && len(all) > 0:
		c.Reason, c.Message = meta.ReasonNoEgressProxies, fmt.Sprintf("Targets %s are in the tailnet; set spec.proxy.connectionType to egress or bidirectional", compose.List(all...))
	case p.full != nil:
		c.Reason, c.Message = meta.ReasonNoFreePort, fmt.Sprintf("Remove a target, or make another TailscaleEndpoints for some: %v", p.full)
	case len(p.Targets.Refused) > 0:
		c.Reason, c.Message = meta.ReasonTargetsRefused, fmt.Sprintf("Targets %s are not served: another one has the name, or there are more than %d", compose.List(p.Targets.Refused...), targets.Max)
	case len(p.Targets.Portless) > 0:
		c.Reason, c.Message = meta.ReasonNoPorts, fmt.Sprintf("Endpoints %s have no port; set port of each, or spec.ports", compose.List(p.Targets.Portless...))
	case len(unplaced) > 0:
		c.Reason = meta.ReasonTargetsNotPlaced
		c.Message = fmt.Sprintf("Endpoints %s are led to once a machine has joined: whether they are in the tailnet depends on its domain", compose.List(unplaced...))
	case p.Proxies.Count == 0:
		c.Reason, c.Message = meta.ReasonNoEgressProxies, "No replicas are wanted; scale the TailscaleEndpoints"
	case len(unreached) > 0 && waiting:
		// Proxies start and report one after another, so a list would change with each report.
		c.Reason, c.Message = meta.ReasonReplicasNotReady, "Waiting for the egress proxies to be ready, and to report every target"
	case len(unreached) == 1:
		c.Reason, c.Message = meta.ReasonTargetsNotReady, "No proxy reaches "+first
	case len(unreached) > 1:
		c.Reason, c.Message = meta.ReasonTargetsNotReady, fmt.Sprintf("No proxy reaches %s; nor %d more, see status.egressTargets", first, len(unreached)-1)
	case remark != "":
		c.Reason, c.Message = remarked, "Every target is reached; "+remark
	default:
		c.Status, c.Reason, c.Message = compose.True, meta.ReasonAllTargetsReady, "Every target is reached by a proxy"
	}
	return c
}

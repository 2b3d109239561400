// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
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

// An egressPlan maps the ports of the egress proxies to targets.
type egressPlan struct {
	// targets are the targets by name, with their ports. A target that needs a proxy and has none
	// has no port.
	targets []target

	// data is the data of the ConfigMap.
	data map[string]string

	// refused are the names of targets that are not served.
	refused []string

	// portless are the endpoints of the spec without a port in the endpoint or in spec.ports. They
	// have no target.
	portless []string

	// unplaced are the endpoints for which the plan does not know yet whether they are in the
	// tailnet.
	unplaced []string

	// full is the reason why some targets have no port. It is nil if all have one.
	full error

	// acceptRoutes reports whether the egress machines use subnet routers.
	acceptRoutes bool
}

// planEgress returns the targets with their ports.
func (e *endpoints) planEgress() (*egressPlan, error) {
	p := &egressPlan{data: e.egressConfig, acceptRoutes: !e.kernel()}
	p.targets, p.refused = e.targets()
	p.portless = portless(e.spec)
	for _, t := range p.targets {
		if t.unplaced {
			p.unplaced = append(p.unplaced, t.endpoint)
		}
	}
	var wanted []egress.Target
	for _, t := range p.proxied() {
		wanted = append(wanted, t.Target)
		// The pod uses the same routes of the kernel: a route of the tailnet could replace one of
		// the cluster.
		p.acceptRoutes = p.acceptRoutes || t.routed()
	}
	if !e.egress.wants {
		// Pods that are about to be removed keep their ports.
		return p, nil
	}

	// A config that cannot be decoded is treated like a lost one: the ports are derived from pods
	// and hashes.
	previous, err := egress.Decode(e.egressConfig[egress.ConfigMapKey])
	if err != nil {
		previous = egress.Config{}
	}
	config, full := egress.Allocate(previous, wanted, e.egress.reports(e.egressConfig[egress.ConfigMapKey]))
	p.full = full
	encoded, err := config.Encode()
	if err != nil {
		return nil, err
	}
	p.data = map[string]string{egress.ConfigMapKey: encoded}
	ports := make(map[string]int32, len(config.Targets))
	for _, t := range config.Targets {
		ports[t.Key] = t.ProxyPort
	}
	for i, t := range p.targets {
		p.targets[i].ProxyPort = ports[t.Key]
	}
	return p, nil
}

// reports returns the pods' reports of their ports. A replica that may run and has not yet read the
// config may use any port of an earlier config.
func (g *group) reports(config string) egress.Reports {
	acted := egress.Revision(config)
	// An older status may lack a replica that has ended since.
	r := egress.Reports{Complete: g.seen()}
	for _, i := range sortedKeys(g.machines) {
		r.Complete = r.Complete && g.machines[i].EgressConfig == acted
	}
	if g.machineSet != nil {
		for _, p := range g.machineSet.Status.Egress {
			r.Ports = append(r.Ports, egress.ReleasedPort{ProxyPort: p.Port, Protocol: p.Protocol, Key: p.Target})
		}
	}
	return r
}

// proxied returns the targets that need a proxy.
func (p *egressPlan) proxied() []target {
	return slices.DeleteFunc(slices.Clone(p.targets), func(t target) bool { return !t.proxied() })
}

// proxySetTargets returns the targets that other objects can use, by a port of the proxies or
// directly.
func (p *egressPlan) proxySetTargets() []tailnetv1alpha1.ProxySetTarget {
	var out []tailnetv1alpha1.ProxySetTarget
	for _, t := range p.targets {
		pt := tailnetv1alpha1.ProxySetTarget{Name: t.name, Port: t.clientPort, Protocol: string(t.speaks), Weight: t.weight}
		switch {
		case t.direct:
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

// egressChildren returns the children that only the egress group has: the ConfigMap of its
// agents, and a Service for each endpoint.
func (g *group) egressChildren(o proxy.Options, p *egressPlan) []compose.Child {
	out := []compose.Child{{Name: g.name(nameConfigMap), Object: proxy.EgressConfigMap(o, p.data), Ready: true}}
	if !g.wants {
		return out
	}
	ports := map[string][]proxy.TargetPort{}
	for _, t := range p.targets {
		if t.endpoint == "" || t.ProxyPort == 0 {
			continue
		}
		ports[t.endpoint] = append(ports[t.endpoint], proxy.TargetPort{
			Name:        t.portName,
			Port:        t.clientPort,
			ProxyPort:   t.ProxyPort,
			Protocol:    t.Protocol,
			AppProtocol: appProtocol(t.speaks),
			SingleStack: t.SingleStack,
		})
	}
	for _, name := range sortedKeys(ports) {
		s := proxy.TargetService(o, g.serviceNames[name], name, ports[name])
		out = append(out, compose.Child{Name: serviceOf(name), Object: s, Ready: true})
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

// egressTargets returns the targets for the status.
func (e *endpoints) egressTargets(p *egressPlan) []gatewayv1alpha1.EgressTargetStatus {
	var out []gatewayv1alpha1.EgressTargetStatus
	for _, t := range p.proxied() {
		s := gatewayv1alpha1.EgressTargetStatus{Name: t.name, Address: t.Address(), TailscaleFQDN: t.Name, Protocol: t.speaks, ProxyPort: t.ProxyPort}
		if t.endpoint != "" && t.ProxyPort != 0 {
			s.Service = fmt.Sprintf("%s:%d", e.serviceNames[t.endpoint], t.clientPort)
		}
		s.ReadyProxies, s.Message = e.reach(t)
		out = append(out, s)
	}
	return out
}

// reach returns the number of proxies that reach a target, and the message of the first proxy that
// does not. If all reach it, the message is the first message of any proxy.
func (e *endpoints) reach(t target) (ready int32, message string) {
	switch {
	case !e.egress.wants:
		return 0, messageNoProxies
	case t.ProxyPort == 0:
		return 0, messageNoPort
	}
	if p, ok := e.egress.ports[portOf(t)]; ok {
		ready, message = p.ReadyMachines, p.Message
	}
	if message == "" && ready < e.egress.count {
		message = messageNoReport
	}
	return ready, message
}

// A reportedPort is a port of the proxies, as they report it.
type reportedPort struct {
	port     int32
	protocol corev1.Protocol
	target   string
}

// portOf returns the port of a target as proxies report it.
func portOf(t target) reportedPort { return reportedPort{t.ProxyPort, t.Protocol, t.Key} }

// egressReady returns the condition EgressReady. Problems that the user can fix come first. A
// target is healthy if at least one proxy reaches it: the status counts the proxies.
func (e *endpoints) egressReady(p *egressPlan) compose.Condition {
	c := compose.Condition{Type: meta.TypeEgressReady, Status: compose.False}
	if !e.composed {
		c.Reason, c.Message = meta.ReasonReplicasNotReady, "There are no proxies while the tailnet is not accepted"
		return c
	}
	var all, unreached []string
	waiting, first, remark, remarked := !e.egress.podsReady(), "", "", meta.ReasonNameMismatch
	for _, t := range p.proxied() {
		all = append(all, t.name)
		ready, m := e.reach(t)
		if ready > 0 {
			if m != "" && remark == "" && ready == e.egress.count {
				remark = t.name + ": " + m
				if t.Name == "" {
					remarked = meta.ReasonFamilyNotServed
				}
			}
			continue
		}
		unreached = append(unreached, t.name)
		waiting = waiting || m == messageNoReport
		if first == "" {
			first = t.name + ": " + m
		}
	}
	switch {
	case !e.egress.wants && len(all) > 0:
		c.Reason, c.Message = meta.ReasonNoEgressProxies, fmt.Sprintf("Targets %s are in the tailnet; set spec.proxy.connectionType to egress or bidirectional", compose.List(all...))
	case p.full != nil:
		c.Reason, c.Message = meta.ReasonNoFreePort, fmt.Sprintf("Remove a target, or make another TailscaleEndpoints for some: %v", p.full)
	case len(p.refused) > 0:
		c.Reason, c.Message = meta.ReasonTargetsRefused, fmt.Sprintf("Targets %s are not served: another one has the name, or there are more than %d", compose.List(p.refused...), maxTargets)
	case len(p.portless) > 0:
		c.Reason, c.Message = meta.ReasonNoPorts, fmt.Sprintf("Endpoints %s have no port; set port of each, or spec.ports", compose.List(p.portless...))
	case len(p.unplaced) > 0:
		c.Reason = meta.ReasonTargetsNotPlaced
		c.Message = fmt.Sprintf("Endpoints %s are led to once a machine has joined: whether they are in the tailnet depends on its domain", compose.List(p.unplaced...))
	case e.egress.count == 0:
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

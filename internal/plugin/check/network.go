// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/reach"
)

// A Role is what a pod does for us.
type Role string

// Roles of pods.
const (
	RoleCrossplane   Role = "Crossplane"
	RoleProvider     Role = "the provider"
	RoleFunction     Role = "the function"
	RoleEnvoyGateway Role = "Envoy Gateway"
	RoleExtension    Role = "the extension"
	RoleEnvoy        Role = "Envoy"
	RoleProxy        Role = "proxies"
	RoleDNS          Role = "DNS"
)

// NetworkFacts are about NetworkPolicies.
type NetworkFacts struct {
	Policies Answer[[]networkingv1.NetworkPolicy]

	// Pods by what they do for us. Those of the same set, which have the same labels, are there once. Unknown says why
	// some are not there.
	Pods Answer[map[Role][]reach.Pod]

	// API are the addresses of the API server, and APIService is the address of the Service kubernetes.
	API        Answer[[]netip.AddrPort]
	APIService netip.AddrPort

	// Others are kinds of which the cluster has objects, and which deny connections, too.
	Others []string
}

// A need is a connection without which something does not work.
type need struct {
	from Role

	// to is a role of pods. It is empty for the API server, and for the Internet.
	to       Role
	internet bool

	port   reach.Port
	impact string
}

// needs returns what our pods, and those that they work with, need.
func needs() []need {
	tcp := func(n int32) reach.Port { return reach.Port{Protocol: corev1.ProtocolTCP, Number: n} }
	out := []need{
		{from: RoleCrossplane, to: RoleFunction, port: tcp(9443), impact: "Crossplane composes nothing of what users write."},
		{from: RoleEnvoyGateway, to: RoleExtension, port: tcp(5005), impact: "Changes of routes have no effect."},
		{from: RoleEnvoy, to: RoleExtension, port: tcp(5006), impact: "Envoy gets no endpoints of our kinds."},
	}
	for _, r := range []Role{RoleCrossplane, RoleProvider, RoleEnvoyGateway, RoleExtension, RoleProxy} {
		out = append(out, need{from: r, port: tcp(443), impact: "They cannot read or write objects."})
	}
	for _, r := range []Role{RoleCrossplane, RoleProvider, RoleEnvoyGateway, RoleProxy} {
		out = append(out, need{from: r, to: RoleDNS, port: reach.Port{Protocol: corev1.ProtocolUDP, Number: 53}, impact: "They find no address."})
	}
	for _, r := range []Role{RoleProvider, RoleProxy} {
		out = append(out, need{from: r, internet: true, port: tcp(443), impact: "They do not reach Tailscale. With an HTTPS proxy of your own they may."})
	}
	return out
}

// target names what a need is to.
func (n need) target() string {
	switch {
	case n.internet:
		return "Tailscale"
	case n.to == "":
		return "the API server"
	}
	return string(n.to)
}

// A blockage is what policies say about a connection of a pod.
type blockage struct {
	pod string
	reach.Verdict
}

// network checks that NetworkPolicies let our pods connect to what they need. The absence of a policy blocks nothing.
func network(f Facts, o Options) result {
	n := f.Network
	if n.Policies.Unknown != "" {
		return unknown("whether network policies block our pods", n.Policies.Unknown)
	}
	out := result{summary: "network policies"}
	policies := byNamespace(n.Policies.Value)
	for _, c := range needs() {
		if c.to == "" && !c.internet && len(n.API.Value) > 0 {
			// Most networks see the port behind the Service.
			c.port.Number = int32(n.API.Value[0].Port())
		}
		var denied, unclear []blockage
		for _, pod := range n.Pods.Value[c.from] {
			switch b := (blockage{pod: pod.Namespace + "/" + pod.Name, Verdict: n.verdict(policies, pod, c)}); b.Answer {
			case reach.Denied:
				denied = append(denied, b)
			case reach.Unclear:
				unclear = append(unclear, b)
			case reach.Allowed:
			}
		}
		if len(denied) > 0 {
			pods, names := blocked(denied)
			out.findings = append(out.findings, Finding{
				Status: Wrong, Summary: fmt.Sprintf("NetworkPolicies keep %s from %s, %s port %d: %s (pods %s)", c.from, c.target(), c.port.Protocol, c.port.Number, names, pods),
				Impact: c.impact, Fix: o.policyFix(denied[0], c),
			})
		}
		if len(unclear) > 0 {
			pods, names := blocked(unclear)
			out.findings = append(out.findings, Finding{
				Status: Unknown, Summary: fmt.Sprintf("whether NetworkPolicies let %s reach %s, %s port %d: it depends on the cluster's network, by %s (pods %s)", c.from, c.target(), c.port.Protocol, c.port.Number, names, pods),
			})
		}
	}
	if n.Pods.Unknown != "" {
		out.findings = append(out.findings, Finding{Status: Unknown, Summary: "whether network policies block all our pods: " + n.Pods.Unknown})
	}
	if len(n.Others) > 0 && len(out.findings) == 0 {
		return skip("the effect of " + strings.Join(n.Others, ", ") + " (their objects are not evaluated; NetworkPolicies block nothing)")
	}
	return out
}

func byNamespace(policies []networkingv1.NetworkPolicy) map[string][]networkingv1.NetworkPolicy {
	out := map[string][]networkingv1.NetworkPolicy{}
	for _, p := range policies {
		out[p.GetNamespace()] = append(out[p.GetNamespace()], p)
	}
	return out
}

// blocked returns the pods of blockages and the policies that they are from, each at most three.
func blocked(all []blockage) (pods, policies string) {
	var names, denials []string
	for _, b := range all {
		names = append(names, b.pod)
		denials = append(denials, b.Policies...)
	}
	slices.Sort(names)
	slices.Sort(denials)
	return listed(slices.Compact(names)), listed(slices.Compact(denials))
}

// policyFix says which policy of which namespace to change.
func (o Options) policyFix(b blockage, n need) string {
	namespace, _, _ := strings.Cut(b.Policies[0], "/")
	return fmt.Sprintf("allow %s port %d from %s to %s in a NetworkPolicy of namespace %s: %s",
		n.port.Protocol, n.port.Number, n.from, n.target(), namespace, o.kubectl("describe networkpolicies --namespace="+Quote(namespace)))
}

// verdict returns whether a pod reaches one of those that it needs: a Service may lead to any of them, so one that it
// does not reach is a fault. DNS may have other pods than those with the usual label.
func (n NetworkFacts) verdict(policies map[string][]networkingv1.NetworkPolicy, pod reach.Pod, c need) reach.Verdict {
	switch {
	case c.internet:
		return reach.Egress(policies[pod.Namespace], pod, reach.Peer{}, c.port)
	case c.to == "":
		return n.api(policies[pod.Namespace], pod)
	}
	worst := reach.Verdict{Answer: reach.Allowed}
	for _, peer := range n.Pods.Value[c.to] {
		both := slices.Concat(policies[pod.Namespace], policies[peer.Namespace])
		if peer.Namespace == pod.Namespace {
			both = policies[pod.Namespace]
		}
		worst = reach.Both(worst, reach.Connection(both, pod, peer, c.port))
	}
	return worst
}

// api returns whether a pod reaches the API server. Networks differ in whether they see the address of the Service or
// that behind it.
func (n NetworkFacts) api(policies []networkingv1.NetworkPolicy, pod reach.Pod) reach.Verdict {
	verdicts := []reach.Verdict{}
	for _, a := range slices.Concat(n.API.Value, []netip.AddrPort{n.APIService}) {
		if a.IsValid() {
			verdicts = append(verdicts, reach.Egress(policies, pod, reach.Peer{Address: a.Addr()}, reach.Port{Protocol: corev1.ProtocolTCP, Number: int32(a.Port())}))
		}
	}
	if len(verdicts) == 0 {
		return reach.Verdict{Answer: reach.Allowed}
	}
	order := func(a, b reach.Verdict) int { return cmp.Compare(a.Answer, b.Answer) }
	out, best := slices.MinFunc(verdicts, order), slices.MaxFunc(verdicts, order)
	if out.Answer != best.Answer {
		out.Answer = reach.Unclear
	}
	return out
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// policiesOf returns policies of YAML specs in the namespace of the server, by name.
func policiesOf(t *testing.T, namespace string, specs map[string]string) []networkingv1.NetworkPolicy {
	t.Helper()
	var out []networkingv1.NetworkPolicy
	for name, spec := range specs {
		p := networkingv1.NetworkPolicy{}
		p.Namespace, p.Name = namespace, name
		if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func client() Pod {
	return Pod{
		Namespace: "clients", Name: "client", Labels: map[string]string{"app": "client"}, NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": "clients"},
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
	}
}

func server() Pod {
	return Pod{
		Namespace: "servers", Name: "server", Labels: map[string]string{"app": "server"}, NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": "servers"},
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")}, Ports: []corev1.ContainerPort{{Name: "hooks", ContainerPort: 5005}},
	}
}

func TestConnection(t *testing.T) {
	type specs = map[string]string
	const selects = "podSelector: {matchLabels: {app: server}}\npolicyTypes: [Ingress]\n"
	denied := Verdict{Answer: Denied, Policies: []string{"servers/p"}}
	unclear := Verdict{Answer: Unclear, Policies: []string{"servers/p"}}
	allowed := Verdict{Answer: Allowed}
	cases := map[string]struct {
		reason  string
		ingress specs
		egress  specs
		change  func(from, to *Pod)
		port    Port
		want    Verdict
	}{
		"None":             {reason: "Without policies all is allowed.", want: allowed},
		"OtherPod":         {reason: "A policy that selects other pods denies nothing.", ingress: specs{"p": "podSelector: {matchLabels: {app: other}}\npolicyTypes: [Ingress]"}, want: allowed},
		"OtherDirection":   {reason: "A policy of connections from a pod denies none to it.", ingress: specs{"p": "podSelector: {}\npolicyTypes: [Egress]"}, want: allowed},
		"DefaultDeny":      {reason: "A policy without rules denies all.", ingress: specs{"p": "podSelector: {}\npolicyTypes: [Ingress]"}, want: denied},
		"DefaultType":      {reason: "A policy without types is for connections to a pod.", ingress: specs{"p": "podSelector: {}"}, want: denied},
		"AllowAll":         {reason: "A rule without anything allows all.", ingress: specs{"p": selects + "ingress: [{}]"}, want: allowed},
		"Union":            {reason: "One policy that allows a connection is enough.", ingress: specs{"a": "podSelector: {}", "b": selects + "ingress: [{ports: [{port: 5005}]}]"}, want: allowed},
		"Port":             {reason: "A rule for another port denies.", ingress: specs{"p": selects + "ingress: [{ports: [{port: 8080}]}]"}, want: denied},
		"Range":            {reason: "A range has its last port.", ingress: specs{"p": selects + "ingress: [{ports: [{port: 5000, endPort: 5005}]}]"}, want: allowed},
		"RangeBelow":       {reason: "A range has no port behind it.", ingress: specs{"p": selects + "ingress: [{ports: [{port: 5000, endPort: 5004}]}]"}, want: denied},
		"Protocol":         {reason: "Ports of UDP are others.", ingress: specs{"p": selects + "ingress: [{ports: [{protocol: UDP, port: 5005}]}]"}, want: denied},
		"ProtocolAlone":    {reason: "A protocol without a port has all ports.", ingress: specs{"p": selects + "ingress: [{ports: [{protocol: TCP}]}]"}, want: allowed},
		"NamedPort":        {reason: "A name is that of a container's port.", ingress: specs{"p": selects + "ingress: [{ports: [{port: hooks}]}]"}, want: allowed},
		"NamedPortOther":   {reason: "A pod without the name has no such port.", ingress: specs{"p": selects + "ingress: [{ports: [{port: web}]}]"}, want: denied},
		"NamedPortUDP":     {reason: "A named port has one protocol.", ingress: specs{"p": selects + "ingress: [{ports: [{protocol: UDP, port: hooks}]}]"}, port: Port{Protocol: corev1.ProtocolUDP, Number: 5005}, want: denied},
		"SameNamespace":    {reason: "A selector of pods alone is for the policy's namespace.", ingress: specs{"p": selects + "ingress: [{from: [{podSelector: {matchLabels: {app: client}}}]}]"}, want: denied},
		"BothSelectors":    {reason: "Two selectors of a peer must both match.", ingress: specs{"p": selects + "ingress: [{from: [{podSelector: {matchLabels: {app: client}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: clients}}}]}]"}, want: allowed},
		"OneSelectorFails": {reason: "One selector that does not match denies.", ingress: specs{"p": selects + "ingress: [{from: [{podSelector: {matchLabels: {app: other}}, namespaceSelector: {}}]}]"}, want: denied},
		"TwoPeers":         {reason: "One of two peers is enough.", ingress: specs{"p": selects + "ingress: [{from: [{podSelector: {}}, {namespaceSelector: {}}]}]"}, want: allowed},
		"Expression":       {reason: "Expressions of selectors count.", ingress: specs{"p": selects + "ingress: [{from: [{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [clients]}]}}]}]"}, want: allowed},
		"UnknownNamespace": {
			reason: "Labels of a namespace that are not known may match.", ingress: specs{"p": selects + "ingress: [{from: [{namespaceSelector: {matchLabels: {a: b}}}]}]"},
			change: func(from, _ *Pod) { from.NamespaceLabels = nil }, want: unclear,
		},
		"BlockOfPods":    {reason: "Networks differ in whether a block is for pods.", ingress: specs{"p": selects + "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]"}, want: unclear},
		"BlockOfOthers":  {reason: "A block without the address denies.", ingress: specs{"p": selects + "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/24]}}]}]"}, want: denied},
		"BlockNotValid":  {reason: "A block that is none decides nothing.", ingress: specs{"p": selects + "ingress: [{from: [{ipBlock: {cidr: all}}]}]"}, want: unclear},
		"BadSelector":    {reason: "A selector that is not valid decides nothing.", ingress: specs{"p": "podSelector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}"}, want: unclear},
		"HostClient":     {reason: "A pod in the host's network has no labels for most networks.", ingress: specs{"p": selects + "ingress: [{from: [{namespaceSelector: {}}]}]"}, change: func(from, _ *Pod) { from.HostNetwork = true }, want: unclear},
		"HostClientNode": {reason: "A block with the node's address allows it.", ingress: specs{"p": selects + "ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]"}, change: func(from, _ *Pod) { from.HostNetwork = true }, want: allowed},
		"HostServer":     {reason: "Most networks do not isolate a pod in the host's network.", ingress: specs{"p": selects}, change: func(_, to *Pod) { to.HostNetwork = true }, want: unclear},
		"Egress": {
			reason: "The policies of the client count, too.", egress: specs{"out": "podSelector: {}\npolicyTypes: [Egress]"},
			want: Verdict{Answer: Denied, Policies: []string{"clients/out"}},
		},
		"EgressNamedPort": {
			reason: "A name is that of the server's port.", egress: specs{"out": "podSelector: {}\npolicyTypes: [Egress]\negress: [{ports: [{port: hooks}], to: [{namespaceSelector: {}}]}]"},
			want: allowed,
		},
		"EgressDefault": {
			reason: "Rules without types have the direction.", egress: specs{"out": "podSelector: {}\negress: [{ports: [{port: 53}]}]"},
			want: Verdict{Answer: Denied, Policies: []string{"clients/out"}},
		},
		"BothSides": {
			reason: "The side that denies is named.", egress: specs{"out": "podSelector: {}\npolicyTypes: [Egress]\negress: [{}]"}, ingress: specs{"p": selects}, want: denied,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, to, port := client(), server(), tc.port
			if tc.change != nil {
				tc.change(&from, &to)
			}
			if port == (Port{}) {
				port = Port{Protocol: corev1.ProtocolTCP, Number: 5005}
			}
			policies := append(policiesOf(t, "servers", tc.ingress), policiesOf(t, "clients", tc.egress)...)
			if diff := cmp.Diff(tc.want, Connection(policies, from, to, port)); diff != "" {
				t.Errorf("%s\nConnection(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEgress(t *testing.T) {
	https := Port{Protocol: corev1.ProtocolTCP, Number: 443}
	api := netip.MustParseAddr("192.168.0.10")
	cases := map[string]struct {
		reason string
		peers  string
		peer   Peer
		want   Answer
	}{
		"Anywhere":       {reason: "A rule without peers is for the Internet.", peers: "[]", want: Allowed},
		"Selector":       {reason: "The Internet has no pods.", peers: "[{namespaceSelector: {}}]", want: Denied},
		"All":            {reason: "A block of all addresses has those of the Internet.", peers: "[{ipBlock: {cidr: 0.0.0.0/0}}]", want: Allowed},
		"AllButPrivate":  {reason: "Private addresses are not of the Internet.", peers: "[{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8, 192.168.0.0/16]}}]", want: Allowed},
		"AllButSome":     {reason: "The excepted addresses may be the ones in question.", peers: "[{ipBlock: {cidr: 0.0.0.0/0, except: [192.0.2.0/24]}}]", want: Unclear},
		"Some":           {reason: "A block may have the right addresses.", peers: "[{ipBlock: {cidr: 192.0.2.0/24}}]", want: Unclear},
		"Private":        {reason: "A private block has none.", peers: "[{ipBlock: {cidr: 10.0.0.0/8}}]", want: Denied},
		"Address":        {reason: "A block has the address.", peers: "[{ipBlock: {cidr: 192.168.0.0/16}}]", peer: Peer{Address: api}, want: Allowed},
		"AddressExcept":  {reason: "It is excepted.", peers: "[{ipBlock: {cidr: 192.168.0.0/16, except: [192.168.0.0/24]}}]", peer: Peer{Address: api}, want: Denied},
		"ExceptNotValid": {reason: "A block that is none decides nothing.", peers: "[{ipBlock: {cidr: 192.168.0.0/16, except: [some]}}]", peer: Peer{Address: api}, want: Unclear},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policies := policiesOf(t, "clients", map[string]string{"out": "podSelector: {}\npolicyTypes: [Egress]\negress: [{to: " + tc.peers + ", ports: [{port: 443}]}]"})
			if got := Egress(policies, client(), tc.peer, https).Answer; got != tc.want {
				t.Errorf("%s\nEgress(...): got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/reach"
)

// podOf returns a pod with a label app.
func podOf(namespace, name string, ports ...corev1.ContainerPort) reach.Pod {
	return reach.Pod{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": name}, NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": namespace}, Ports: ports,
	}
}

// networked returns the pods of an installation.
func networked() NetworkFacts {
	return NetworkFacts{
		Pods: Answer[map[Role][]reach.Pod]{Value: map[Role][]reach.Pod{
			RoleCrossplane:   {podOf("crossplane-system", "crossplane")},
			RoleProvider:     {podOf("crossplane-system", "provider")},
			RoleFunction:     {podOf("crossplane-system", "function")},
			RoleEnvoyGateway: {podOf("envoy-gateway-system", "envoy-gateway")},
			RoleExtension:    {podOf("envoy-gateway-system", "extension", corev1.ContainerPort{Name: "hooks", ContainerPort: 5005}, corev1.ContainerPort{Name: "eds", ContainerPort: 5006})},
			RoleEnvoy:        {podOf("envoy-gateway-system", "envoy")},
			RoleProxy:        {podOf("shop", "web-0"), podOf("other", "web-0")},
			RoleDNS:          {podOf("kube-system", "coredns")},
		}},
		API:        Answer[[]netip.AddrPort]{Value: []netip.AddrPort{netip.MustParseAddrPort("192.168.0.10:6443")}},
		APIService: netip.MustParseAddrPort("10.96.0.1:443"),
	}
}

func TestNetwork(t *testing.T) {
	policy := func(namespace, name, spec string) networkingv1.NetworkPolicy {
		p := networkingv1.NetworkPolicy{}
		p.Namespace, p.Name = namespace, name
		if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
			t.Fatal(err)
		}
		return p
	}
	const everywhere = "0.0.0.0/0, except: [10.0.0.0/8, 192.168.0.0/16]"
	cases := map[string]struct {
		reason   string
		policies []networkingv1.NetworkPolicy
		change   func(*NetworkFacts)
		want     []Finding
		skipped  string
	}{
		"None": {reason: "Where no policy is, none blocks anything."},
		"Charts": {
			reason: "The policies of our charts let pass what we need.",
			policies: []networkingv1.NetworkPolicy{
				policy("crossplane-system", "tailscale-gateway-provider", "podSelector: {matchLabels: {app: provider}}\npolicyTypes: [Ingress]\ningress: [{ports: [{protocol: TCP, port: 8080}]}]"),
				policy("crossplane-system", "tailscale-gateway-function", "podSelector: {matchLabels: {app: function}}\npolicyTypes: [Ingress, Egress]\ningress: [{from: [{podSelector: {matchLabels: {app: crossplane}}}], ports: [{protocol: TCP, port: 9443}]}]\negress: []"),
				policy("envoy-gateway-system", "extension", "podSelector: {matchLabels: {app: extension}}\npolicyTypes: [Ingress]\ningress: [{ports: [{port: hooks}], from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: envoy-gateway-system}}, podSelector: {matchLabels: {app: envoy-gateway}}}]}, {ports: [{port: eds}], from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: envoy-gateway-system}}, podSelector: {matchLabels: {app: envoy}}}]}]"),
			},
		},
		"Function": {
			reason: "Crossplane calls the function.", policies: []networkingv1.NetworkPolicy{policy("crossplane-system", "default-deny", "podSelector: {matchLabels: {app: function}}\npolicyTypes: [Ingress]")},
			want: []Finding{{
				Status: Wrong, Summary: "NetworkPolicies keep Crossplane from the function, TCP port 9443: crossplane-system/default-deny (pods crossplane-system/crossplane)",
				Impact: "Crossplane composes nothing of what users write.",
				Fix:    "allow TCP port 9443 from Crossplane to the function in a NetworkPolicy of namespace crossplane-system: kubectl describe networkpolicies --namespace=crossplane-system",
			}},
		},
		"Hooks": {
			reason: "Envoy Gateway in another namespace than the chart assumes is not let in.",
			policies: []networkingv1.NetworkPolicy{
				policy("envoy-gateway-system", "extension", "podSelector: {matchLabels: {app: extension}}\ningress: [{ports: [{port: hooks}], from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: gateways}}}]}, {ports: [{port: eds}]}]"),
			},
			want: []Finding{{
				Status: Wrong, Summary: "NetworkPolicies keep Envoy Gateway from the extension, TCP port 5005: envoy-gateway-system/extension (pods envoy-gateway-system/envoy-gateway)",
				Impact: "Changes of routes have no effect.",
				Fix:    "allow TCP port 5005 from Envoy Gateway to the extension in a NetworkPolicy of namespace envoy-gateway-system: kubectl describe networkpolicies --namespace=envoy-gateway-system",
			}},
		},
		"Proxies": {
			reason: "Proxies connect to the API server, DNS and Tailscale; those of other namespaces are right.", policies: []networkingv1.NetworkPolicy{policy("shop", "default-deny", "podSelector: {}\npolicyTypes: [Egress]")},
			want: []Finding{
				{
					Status: Wrong, Summary: "NetworkPolicies keep proxies from the API server, TCP port 6443: shop/default-deny (pods shop/web-0)", Impact: "They cannot read or write objects.",
					Fix: "allow TCP port 6443 from proxies to the API server in a NetworkPolicy of namespace shop: kubectl describe networkpolicies --namespace=shop",
				},
				{
					Status: Wrong, Summary: "NetworkPolicies keep proxies from DNS, UDP port 53: shop/default-deny (pods shop/web-0)", Impact: "They find no address.",
					Fix: "allow UDP port 53 from proxies to DNS in a NetworkPolicy of namespace shop: kubectl describe networkpolicies --namespace=shop",
				},
				{
					Status: Wrong, Summary: "NetworkPolicies keep proxies from Tailscale, TCP port 443: shop/default-deny (pods shop/web-0)", Impact: "They do not reach Tailscale. With an HTTPS proxy of your own they may.",
					Fix: "allow TCP port 443 from proxies to Tailscale in a NetworkPolicy of namespace shop: kubectl describe networkpolicies --namespace=shop",
				},
			},
		},
		"ServiceAddress": {
			reason: "Networks differ in which address of the API server they see.",
			policies: []networkingv1.NetworkPolicy{
				policy("shop", "out", "podSelector: {}\npolicyTypes: [Egress]\negress: [{to: [{ipBlock: {cidr: 10.96.0.1/32}}, {ipBlock: {cidr: "+everywhere+"}}, {namespaceSelector: {}}]}]"),
			},
			want: []Finding{{
				Status: Unknown, Summary: "whether NetworkPolicies let proxies reach the API server, TCP port 6443: it depends on the cluster's network, by shop/out (pods shop/web-0)",
			}},
		},
		"Documented": {
			reason:   "The policy of docs/proxies.md is enough.",
			policies: []networkingv1.NetworkPolicy{policy("shop", "proxies-out", "podSelector: {}\npolicyTypes: [Egress]\negress: [{}]"), policy("shop", "default-deny", "podSelector: {}\npolicyTypes: [Ingress, Egress]")},
		},
		"SomePods": {
			reason: "Pods that the caller may not read are unknown.", change: func(n *NetworkFacts) { n.Pods.Unknown = "forbidden" },
			want: []Finding{{Status: Unknown, Summary: "whether network policies block all our pods: forbidden"}},
		},
		"Others": {
			reason: "Objects that are not evaluated are named.", change: func(n *NetworkFacts) { n.Others = []string{"ciliumnetworkpolicies.cilium.io"} },
			skipped: "the effect of ciliumnetworkpolicies.cilium.io (their objects are not evaluated; NetworkPolicies block nothing)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := Facts{Network: networked()}
			f.Network.Policies.Value = tc.policies
			if tc.change != nil {
				tc.change(&f.Network)
			}
			got := network(f, defaults())
			if diff := cmp.Diff(tc.want, got.findings); diff != "" || got.skipped != tc.skipped {
				t.Errorf("%s\nnetwork(...): skipped %q, -want, +got:\n%s", tc.reason, got.skipped, diff)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// webAt returns the target of routeToWeb.
func webAt(s *ir.Snapshot) *ir.Target {
	return s.Target(ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP})
}

func edgeAt(s *ir.Snapshot, port int32) *ir.Target {
	return s.Target(ir.TargetKey{Kind: ir.TargetEndpoints, Namespace: "shop", Name: "edge", Port: port, Protocol: ir.ProtocolHTTP})
}

// addressesOf returns the addresses of a target's endpoints in all localities.
func addressesOf(t *ir.Target) []string {
	var out []string
	for _, l := range t.Localities {
		for _, e := range l.Endpoints {
			out = append(out, e.Address)
		}
	}
	return out
}

// external returns a TailscaleServices with one External backend at a host.
func external(host string) string {
	return services(fmt.Sprintf(`{vipService: {ports: ["tcp:80"]}, backends: [{kind: External, name: legacy, host: %q, port: 8080}]}`, host))
}

// directAt returns a ProxySet with one target outside of the tailnet.
func directAt(address string) string {
	return fmt.Sprintf(`
apiVersion: tailnet.gateway.tailscale.com/v1alpha1
kind: ProxySet
metadata: {name: edge-proxies}
spec:
  endpoints: edge
  tailnet: corp
  targets:
  - {name: ext/80, port: 80, protocol: TCP, address: %q, weight: 1}
`, address)
}

// TestForbiddenAddresses tries each way in which a tenant could make Envoy connect to
// itself, to its node or to an address without a host.
func TestForbiddenAddresses(t *testing.T) {
	hosts := map[string]string{
		"Loopback":       "127.0.0.1",
		"LoopbackOther":  "127.9.9.9",
		"Loopback6":      "::1",
		"Mapped":         "::ffff:127.0.0.1",
		"Translated":     "::ffff:0:127.0.0.1",
		"Compatible":     "::127.0.0.1",
		"NAT64":          "64:ff9b::127.0.0.1",
		"NAT64Local":     "64:ff9b:1::127.0.0.1",
		"SixToFour":      "2002:7f00:1::1",
		"LinkLocal":      "169.254.169.254",
		"LinkLocal6":     "fe80::1",
		"LinkLocalNAT64": "64:ff9b::a9fe:a9fe",
		"Unspecified":    "0.0.0.0",
		"ThisNetwork":    "0.0.0.1",
		"Unspecified6":   "::",
		"Multicast":      "224.0.0.1",
		"Multicast6":     "ff02::1",
		"Broadcast":      "255.255.255.255",
		"MetadataAWS":    "fd00:ec2::254",
		"MetadataAzure":  "168.63.129.16",
	}
	for n, host := range hosts {
		t.Run(n, func(t *testing.T) {
			literal := netip.MustParseAddr(host)
			bracketed := netip.AddrPortFrom(literal, 80).String()
			family := "IPv4"
			if literal.Is6() {
				family = "IPv6"
			}
			ways := map[string]func() *ir.Target{
				"ExternalBackend": func() *ir.Target { return webAt(snapshotOf(t, routeToWeb, external(host))) },
				"ExternalBackendByName": func() *ir.Target {
					s := directStore()
					apply(t, s, false, routeToWeb, external("rebinds.example.com"))
					s.SetHost("rebinds.example.com", []string{"192.0.2.1"})
					s.SetHost("rebinds.example.com", []string{host})
					return webAt(s.Snapshot())
				},
				"ExternalTarget": func() *ir.Target {
					return edgeAt(snapshotOf(t, routeTo("HTTPRoute", 80), endpointsEdge, directAt(bracketed)), 80)
				},
				"ExternalTargetByName": func() *ir.Target {
					s := directStore()
					apply(t, s, false, routeTo("HTTPRoute", 80), endpointsEdge, directAt("rebinds.example.com:80"))
					s.SetHost("rebinds.example.com", []string{host})
					return edgeAt(s.Snapshot(), 80)
				},
				"EndpointSlice": func() *ir.Target {
					slice := strings.NewReplacer("10.2.0.1", fmt.Sprintf("%q", host), "IPv4", family, "name: alt", "name: app").Replace(sliceAlt)
					service := strings.NewReplacer("name: alt", "name: app", "spec: {", "spec: {ipFamilies: ["+family+"], ").Replace(serviceAlt)
					return webAt(snapshotOf(t, routeToWeb, servicesWeb, service, strings.Replace(slice, "service-name: alt", "service-name: app", 1)))
				},
			}
			for way, target := range ways {
				got := target()
				if addresses := addressesOf(got); len(addresses) > 0 {
					t.Errorf("%s: Envoy must not connect to %s, but has endpoints %v", way, host, addresses)
				}
				if got.Problem == "" || way != "EndpointSlice" && !strings.Contains(got.Problem, "is refused") {
					t.Errorf("%s: the problem must say that %s is refused, got %q", way, host, got.Problem)
				}
			}
		})
	}
}

// TestForbiddenNames tries host names of the local machine.
func TestForbiddenNames(t *testing.T) {
	for _, host := range []string{"localhost", "LocalHost.", "a.localhost", "a.b.localhost."} {
		s := directStore()
		apply(t, s, false, routeToWeb, external(host))
		if got := s.Hosts(); len(got) > 0 {
			t.Errorf("%s must not be looked up, got %v", host, got)
		}
		if got := webAt(s.Snapshot()).Problem; !strings.Contains(got, "is refused") {
			t.Errorf("%s: the problem must say that it is refused, got %q", host, got)
		}
	}
}

// TestOtherNamespaces tries to reach objects of another namespace.
func TestOtherNamespaces(t *testing.T) {
	const (
		database = `
apiVersion: v1
kind: Service
metadata: {name: db, namespace: bank}
spec: {clusterIP: 10.96.0.9, clusterIPs: [10.96.0.9, "fd00:96::9"], externalIPs: [203.0.113.9], selector: {app: db}, ports: [{port: 5432}]}
`
		pods = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: bank, labels: {kubernetes.io/service-name: db, endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}}
addressType: IPv4
ports: [{name: "", port: 5432, protocol: TCP}]
endpoints: [{addresses: [10.8.0.9], conditions: {}}]
`
		grant = `
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: shop, namespace: bank}
spec:
  from: [{group: gateway.tailscale.com, kind: TailscaleServices, namespace: shop}]
  to: [{group: "", kind: Service, name: db}]
`
		name = "db.bank.svc.cluster.local"
	)
	other := strings.Replace(grant, "kind: TailscaleServices", "kind: TailscaleEndpoints", 1)
	elsewhere := strings.Replace(grant, "name: db", "name: cache", 1)
	cases := map[string]struct {
		reason   string
		host     string
		resolves []string
		objects  []string
		want     []string

		// Each of these must be part of the problem.
		problem []string
	}{
		"ClusterIP": {
			reason:  "The cluster IP of another namespace's Service should be refused.",
			host:    "10.96.0.9",
			objects: []string{database},
			problem: []string{"10.96.0.9 is refused", "Service bank/db", "ReferenceGrant", "namespace bank", "from kind TailscaleServices (group gateway.tailscale.com) of namespace shop to kind Service (group \"\") name db"},
		},
		"SecondClusterIP": {
			reason:  "The second cluster IP of such a Service should be refused.",
			host:    "fd00:96::9",
			objects: []string{database},
			problem: []string{"fd00:96::9 is refused", "Service bank/db"},
		},
		"ExternalIP": {
			reason:  "An external IP of such a Service should stay with who names it: everybody can write one.",
			host:    "203.0.113.9",
			objects: []string{database},
			want:    []string{"203.0.113.9"},
		},
		"NAT64": {
			reason:  "A NAT64 address of such a Service should be refused.",
			host:    "64:ff9b::10.96.0.9",
			objects: []string{database},
			problem: []string{"64:ff9b::a60:9 is refused", "Service bank/db"},
		},
		"Mapped": {
			reason:  "An IPv4-mapped address of such a Service should be refused.",
			host:    "::ffff:10.96.0.9",
			objects: []string{database},
			problem: []string{"is refused", "Service bank/db"},
		},
		"PodIP": {
			reason:  "The address of a pod behind such a Service should be refused.",
			host:    "10.8.0.9",
			objects: []string{database, pods},
			problem: []string{"10.8.0.9 is refused", "Service bank/db"},
		},
		"Name": {
			reason:   "The DNS name of such a Service should be refused without a look-up.",
			host:     name,
			resolves: []string{"10.8.0.200"},
			objects:  []string{database},
			problem:  []string{name + " is refused", "Service bank/db", "ReferenceGrant"},
		},
		"ShortName": {
			reason:   "The short DNS name of such a Service should be refused.",
			host:     "db.bank.svc",
			resolves: []string{"10.8.0.200"},
			problem:  []string{"db.bank.svc is refused", "Service bank/db"},
		},
		"ResolvesThere": {
			reason:   "A name that resolves to such an address should be refused.",
			host:     "innocent.example.com",
			resolves: []string{"10.96.0.9"},
			objects:  []string{database},
			problem:  []string{"10.96.0.9", "is refused", "Service bank/db"},
		},
		"ResolvesPartlyThere": {
			reason:   "The other addresses of such a name should stay.",
			host:     "innocent.example.com",
			resolves: []string{"10.96.0.9", "192.0.2.1"},
			objects:  []string{database},
			want:     []string{"192.0.2.1"},
		},
		"Granted": {
			reason:  "A ReferenceGrant should permit the address.",
			host:    "10.96.0.9",
			objects: []string{database, grant},
			want:    []string{"10.96.0.9"},
		},
		"GrantedName": {
			reason:   "A ReferenceGrant should permit the name.",
			host:     name,
			resolves: []string{"10.96.0.9"},
			objects:  []string{database, grant},
			want:     []string{"10.96.0.9"},
		},
		"GrantedOther": {
			reason:  "A ReferenceGrant for another kind should permit nothing.",
			host:    "10.96.0.9",
			objects: []string{database, other},
			problem: []string{"is refused"},
		},
		"GrantedElsewhere": {
			reason:  "A ReferenceGrant for another Service should permit nothing.",
			host:    "10.96.0.9",
			objects: []string{database, elsewhere},
			problem: []string{"is refused"},
		},
		"Own": {
			reason:  "A Service of the same namespace needs no grant.",
			host:    "10.96.0.9",
			objects: []string{strings.ReplaceAll(database, "bank", "shop")},
			want:    []string{"10.96.0.9"},
		},
		"OwnAsWell": {
			reason:  "An address that another namespace has should be refused even if an EndpointSlice of this namespace lists it too.",
			host:    "10.8.0.9",
			objects: []string{database, pods, strings.ReplaceAll(pods, "bank", "shop")},
			problem: []string{"is refused", "Service bank/db"},
		},
		"SliceOfAStranger": {
			reason:  "An EndpointSlice that Kubernetes did not write should take no address away.",
			host:    "10.8.0.9",
			objects: []string{database, strings.Replace(pods, "endpointslice-controller.k8s.io", "stranger", 1)},
			want:    []string{"10.8.0.9"},
		},
		"SliceWithoutSelector": {
			reason:  "Nor should one that only says so, which the controller leaves alone for want of a selector.",
			host:    "10.8.0.9",
			objects: []string{strings.Replace(database, "selector: {app: db}, ", "", 1), pods},
			want:    []string{"10.8.0.9"},
		},
		"Outside": {
			reason:  "An address outside of the cluster needs no grant.",
			host:    "192.0.2.1",
			objects: []string{database, pods},
			want:    []string{"192.0.2.1"},
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			// The result must not depend on the order of the objects.
			for _, first := range []bool{true, false} {
				s := directStore()
				if first {
					apply(t, s, false, tc.objects...)
				}
				apply(t, s, false, routeToWeb, external(tc.host))
				if len(tc.resolves) > 0 {
					s.SetHost(tc.host, tc.resolves)
				}
				if !first {
					for _, o := range tc.objects {
						apply(t, s, false, o)
					}
				}
				got := webAt(s.Snapshot())
				if diff := cmp.Diff(tc.want, addressesOf(got)); diff != "" {
					t.Errorf("%s\nobjects first: %v\n-want, +got\n%s", tc.reason, first, diff)
				}
				for _, p := range tc.problem {
					if !strings.Contains(got.Problem, p) {
						t.Errorf("%s\nobjects first: %v\nwant %q in problem %q", tc.reason, first, p, got.Problem)
					}
				}
				if len(tc.problem) == 0 && got.Problem != "" {
					t.Errorf("%s\nobjects first: %v\nwant no problem, got %q", tc.reason, first, got.Problem)
				}
			}
		})
	}

	t.Run("Gone", func(t *testing.T) {
		s := directStore()
		apply(t, s, false, database, grant, routeToWeb, external("10.96.0.9"))
		apply(t, s, true, grant)
		if got := addressesOf(webAt(s.Snapshot())); len(got) > 0 {
			t.Errorf("want no endpoint after the grant is deleted, got %v", got)
		}
		apply(t, s, true, database)
		if diff := cmp.Diff([]string{"10.96.0.9"}, addressesOf(webAt(s.Snapshot()))); diff != "" {
			t.Errorf("want the address after the Service is deleted: -want, +got\n%s", diff)
		}
	})
}

// TestDialling checks the settings of a DialPolicy, and targets that need none.
func TestDialling(t *testing.T) {
	proxied := strings.Replace(directAt("192.0.2.1:80"), `address: "192.0.2.1:80"`, "proxyPort: 10001", 1)
	proxied = strings.Replace(proxied, "  targets:", "  sets:\n  - {name: edge-out, direction: Egress, replicas: 2}\n  targets:", 1)
	cases := map[string]struct {
		reason  string
		allowed DialPolicy
		objects []string
		target  func(*ir.Snapshot) *ir.Target
		want    []string
		problem string
	}{
		"ExternalOff": {
			reason:  "A host outside of the tailnet should be refused by default.",
			objects: []string{routeToWeb, external("192.0.2.1")},
			target:  webAt,
			problem: "192.0.2.1 is refused: Envoy would connect to it by itself, outside of the tailnet, which is turned off; have the platform team set directTargets",
		},
		"TargetOff": {
			reason:  "An externalTarget should be refused by default.",
			objects: []string{routeTo("HTTPRoute", 80), endpointsEdge, directAt("192.0.2.1:80")},
			target:  func(s *ir.Snapshot) *ir.Target { return edgeAt(s, 80) },
			problem: "192.0.2.1 is refused",
		},
		"ProxiedWhileOff": {
			reason:  "A target behind egress proxies needs no DialPolicy.",
			objects: []string{routeTo("HTTPRoute", 80), endpointsEdge, proxied, sliceEdge},
			target:  func(s *ir.Snapshot) *ir.Target { return edgeAt(s, 80) },
			want:    []string{"10.1.0.1", "10.1.0.3"},
		},
		"ServiceWhileOff": {
			reason:  "A Service needs no DialPolicy.",
			objects: []string{routeToWeb, servicesWeb, strings.ReplaceAll(serviceAlt, "alt", "app"), strings.ReplaceAll(sliceAlt, "alt", "app")},
			target:  webAt,
			want:    []string{"10.2.0.1"},
		},
		"LoopbackOfOnesOwn": {
			reason:  "Loopback addresses should be permitted on the user's machine.",
			allowed: DialPolicy{Direct: true, Loopback: true},
			objects: []string{routeToWeb, external("127.0.0.1")},
			target:  webAt,
			want:    []string{"127.0.0.1"},
		},
		"LinkLocalOfOnesOwn": {
			reason:  "Link-local addresses should be refused even there.",
			allowed: DialPolicy{Direct: true, Loopback: true},
			objects: []string{routeToWeb, external("169.254.169.254")},
			target:  webAt,
			problem: "is refused: it is a link-local address",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := NewStore()
			s.SetDialPolicy(tc.allowed)
			apply(t, s, false, tc.objects...)
			got := tc.target(s.Snapshot())
			if diff := cmp.Diff(tc.want, addressesOf(got)); diff != "" {
				t.Errorf("%s\n-want, +got\n%s", tc.reason, diff)
			}
			if (tc.problem == "") != (got.Problem == "") || !strings.Contains(got.Problem, tc.problem) {
				t.Errorf("%s\nproblem: want %q in %q", tc.reason, tc.problem, got.Problem)
			}
		})
	}
}

// TestRefusedInPart checks a target with one refused backend and another that answers.
func TestRefusedInPart(t *testing.T) {
	got := webAt(snapshotOf(t, routeToWeb, services(`{vipService: {ports: ["tcp:80"]}, backends: [
		{kind: External, name: good, host: 192.0.2.1, port: 80}, {kind: External, name: bad, host: 127.0.0.1, port: 80}]}`)))
	if got.Problem != "" {
		t.Errorf("want no problem because one backend answers, got %q", got.Problem)
	}
	want := []string{"127.0.0.1 is refused: it is a loopback address, which Envoy must not connect to; name another host"}
	if diff := cmp.Diff(want, got.Refused); diff != "" {
		t.Errorf("refused hosts: -want, +got\n%s", diff)
	}
}

// directStore returns a store whose Envoys may connect directly to hosts outside of the
// tailnet.
func directStore() *Store {
	s := NewStore()
	s.SetDialPolicy(DialPolicy{Direct: true})
	return s
}

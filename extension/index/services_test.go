// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

func pods(port int32, addresses ...string) []ir.Endpoint {
	var out []ir.Endpoint
	for _, a := range addresses {
		out = append(out, ir.Endpoint{Address: a, Port: port, Weight: 1})
	}
	return out
}

func draining(port int32, address string) ir.Endpoint {
	return ir.Endpoint{Address: address, Port: port, Weight: 1, Health: ir.Draining}
}

// services returns a TailscaleServices with a spec, in braces, to which it adds the
// selector.
func services(spec string) string {
	return "apiVersion: gateway.tailscale.com/v1alpha1\nkind: TailscaleServices\nmetadata: {name: web}\nspec: {selector: {}, " + strings.TrimPrefix(spec, "{")
}

const (
	serviceAlt = `
apiVersion: v1
kind: Service
metadata: {name: alt}
spec: {ports: [{port: 8080}]}
`
	sliceAlt = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: alt-1, labels: {kubernetes.io/service-name: alt}}
addressType: IPv4
ports: [{name: "", port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.2.0.1], conditions: {}}]
`
)

// asWeb returns an object of the Service app as an object of a Service web, with further
// replacements.
func asWeb(object string, further ...string) string {
	return strings.NewReplacer(append([]string{"name: app", "name: web"}, further...)...).Replace(object)
}

// asOf returns localities with another name.
func asOf(name string, locs []ir.Locality) []ir.Locality {
	out := slices.Clone(locs)
	for i := range out {
		out[i].Name = name
	}
	return out
}

func TestServicesLocalities(t *testing.T) {
	local := []ir.Locality{
		{Name: "app", Zone: "a", Weight: 1, Endpoints: append(pods(3000, "10.0.0.1"), draining(3000, "10.0.0.3"))},
		{Name: "app", Zone: "b", Weight: 1, Endpoints: pods(3000, "10.0.0.2")},
	}
	edge := append(pods(10007, "10.1.0.1"), draining(10007, "10.1.0.3"))
	alt := pods(8080, "10.2.0.1")
	cases := map[string]struct {
		reason  string
		objects []string
		want    []ir.Locality
		problem string
		missing bool
		drains  bool
	}{
		"Local": {
			reason:  "Ready pods should be endpoints at the target port, by zone. A terminating pod should drain, and a pod that is not ready should be left out.",
			objects: []string{servicesWeb, serviceApp, sliceApp},
			want:    local,
		},
		"NoObject": {
			reason:  "A missing object should be reported.",
			problem: "TailscaleServices shop/web does not exist",
			missing: true,
		},
		"NoPort": {
			reason:  "A port that the object does not have should count as missing.",
			objects: []string{services(`{vipService: {ports: ["tcp:81"]}, backends: [{name: app, port: 8080}]}`)},
			problem: "add tcp:80 to spec.vipService.ports",
			missing: true,
		},
		"NoService": {
			reason:  "A missing Service should keep its locality, without endpoints.",
			objects: []string{servicesWeb},
			want:    []ir.Locality{{Name: "app", Weight: 1}},
			problem: "Service shop/app does not exist",
		},
		"NoServicePort": {
			reason:  "The port of a backend should be a port of the Service, not of its pods.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 3000}]}`), serviceApp, sliceApp},
			want:    []ir.Locality{{Name: "app", Weight: 1}},
			problem: "has no port 3000 of TCP",
		},
		"NothingReady": {
			reason:  "A Service with draining pods only should be reported.",
			objects: []string{servicesWeb, serviceApp, strings.ReplaceAll(sliceApp, "ready: true", "ready: false")},
			want:    []ir.Locality{{Name: "app", Zone: "a", Weight: 1, Endpoints: []ir.Endpoint{draining(3000, "10.0.0.3")}}},
			problem: "TailscaleServices shop/web:",
		},
		"ExternalName": {
			reason:  "A Service of type ExternalName should be reported, because it has no endpoints.",
			objects: []string{servicesWeb, "apiVersion: v1\nkind: Service\nmetadata: {name: app}\nspec: {type: ExternalName, externalName: example.com}\n"},
			want:    []ir.Locality{{Name: "app", Weight: 1}},
			problem: "is of type ExternalName",
		},
		"Namesake": {
			reason:  "Without backends, the Service with the object's name should be the backend, at the port of the same number.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}}`), asWeb(serviceApp, "8080", "80"), asWeb(sliceApp)},
			want:    asOf("web", local),
		},
		"NamesakeOnlyPort": {
			reason:  "Without backends, a Service with one port should be the backend at that port.",
			objects: []string{services(`{vipService: {enabled: false, ports: ["tcp:80"]}}`), asWeb(serviceApp), asWeb(sliceApp)},
			want:    asOf("web", local),
		},
		"NamesakePorts": {
			reason:  "Without ports in the spec, the ports of the Service should apply.",
			objects: []string{services(`{vipService: {enabled: false}}`), asWeb(serviceApp, "8080", "80"), asWeb(sliceApp)},
			want:    asOf("web", local),
		},
		"NamesakeOtherPorts": {
			reason:  "A port that the Service does not have should be reported.",
			objects: []string{services(`{}`), asWeb(serviceApp), asWeb(sliceApp)},
			problem: "it has no port 80",
			missing: true,
		},
		"NoNamesake": {
			reason:  "A missing Service with the object's name should keep its locality.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}}`)},
			want:    []ir.Locality{{Name: "web", Weight: 1}},
			problem: "Service shop/web does not exist",
		},
		"NoNamesakeNoPorts": {
			reason:  "Without ports and Service, the port should count as missing.",
			objects: []string{services(`{}`)},
			problem: `there is no Service "web" in namespace "shop"`,
			missing: true,
		},
		"BackendsNoPorts": {
			reason:  "The vipPort of a backend should be a port of the object.",
			objects: []string{services(`{backends: [{name: app, port: 8080, vipPort: 80}]}`), serviceApp, sliceApp},
			want:    local,
		},
		"VIPPort": {
			reason:  "A backend with a vipPort should take precedence over one for all ports.",
			objects: []string{services(`{vipService: {ports: ["tcp:80", "tcp:81"]}, backends: [{name: app, port: 8080}, {name: alt, port: 8080, vipPort: 80}]}`), serviceApp, sliceApp, serviceAlt, sliceAlt},
			want:    []ir.Locality{{Name: "alt", Weight: 1, Endpoints: alt}},
		},
		"AllPorts": {
			reason:  "With all ports open, a connection should keep its port.",
			objects: []string{services(`{vipService: {ports: [do-not-validate]}, backends: [{name: app, port: 8080}]}`), strings.ReplaceAll(serviceApp, "8080", "80"), sliceApp},
			want:    local,
		},
		"Weights": {
			reason:  "The weights should be those of the backends, split by zone in whole numbers. A backend of weight 0 should get no traffic.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080, weight: 3}, {name: alt, port: 8080, weight: 7}, {name: none, port: 1, weight: 0}]}`), serviceApp, sliceApp, serviceAlt, sliceAlt},
			want: []ir.Locality{
				{Name: "alt", Weight: 14, Endpoints: alt},
				{Name: "app", Zone: "a", Weight: 3, Endpoints: local[0].Endpoints},
				{Name: "app", Zone: "b", Weight: 3, Endpoints: local[1].Endpoints},
			},
		},
		"SameNameTwice": {
			reason:  "A Service with two ports should have two localities.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: alt, port: 8080}, {name: alt, port: 8081}]}`), serviceAlt, sliceAlt},
			want:    []ir.Locality{{Name: "alt", Weight: 1, Endpoints: alt}, {Name: "alt/1", Weight: 1}},
		},
		"WeightsByName": {
			reason:  "The weights of the strategy weighted should replace those of the backends, with 1 for a backend that it does not name.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}, {name: alt, port: 8080}], loadBalancing: {strategy: weighted, weights: {alt: 4}}}`), serviceApp, serviceAlt, sliceAlt},
			want:    []ir.Locality{{Name: "alt", Weight: 4, Endpoints: alt}, {Name: "app", Weight: 1}},
		},
		"Priorities": {
			reason:  "Priorities should be renumbered from 0 without gaps.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080, priority: 9}, {name: alt, port: 8080, priority: 5}]}`), serviceApp, serviceAlt, sliceAlt},
			want:    []ir.Locality{{Name: "alt", Weight: 1, Endpoints: alt}, {Name: "app", Priority: 1, Weight: 1}},
		},
		"Failover": {
			reason: "The strategy failover should order the backends, and other clusters should come after all local backends.",
			objects: []string{
				services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}, {name: alt, port: 8080}], loadBalancing: {strategy: failover, failover: {primary: alt, secondary: [app]}}}`),
				serviceApp, serviceAlt, sliceAlt, attachmentWeb, proxySetEdge, sliceEdge,
			},
			want: []ir.Locality{
				{Name: "alt", Weight: 1, Endpoints: alt},
				{Name: "app", Priority: 1, Weight: 1},
				{Name: "web-edge-remote", Remote: true, Priority: 2, Weight: 1, Endpoints: edge},
			},
		},
		"Remote": {
			reason:  "Another cluster should come after local backends, at its port of the serving egress pods.",
			objects: []string{servicesWeb, serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge},
			want:    append(append([]ir.Locality{}, local...), ir.Locality{Name: "web-edge-remote", Remote: true, Priority: ir.PriorityRemote, Weight: 1, Endpoints: edge}),
		},
		"RemoteAlone": {
			reason:  "Local backends without endpoints should keep their locality, so that remote endpoints keep their priority.",
			objects: []string{servicesWeb, serviceApp, attachmentWeb, proxySetEdge, sliceEdge},
			want:    []ir.Locality{{Name: "app", Weight: 1}, {Name: "web-edge-remote", Remote: true, Priority: ir.PriorityRemote, Weight: 1, Endpoints: edge}},
		},
		"Drains": {
			drains: true,
			reason: "While the service drains, the cluster that serves should come first, one that does not after it, and this one last.",
			objects: []string{
				servicesWeb, serviceApp, sliceApp, strings.ReplaceAll(attachmentWeb, "  ports:", "  drain: true\n  ports:"),
				strings.ReplaceAll(attachmentWeb, "web-edge-remote", "web-edge2-remote"), proxySetEdge, sliceEdge,
			},
			want: []ir.Locality{
				{Name: "app", Weight: 1},
				{Name: "web-edge-remote", Remote: true, Priority: 1, Weight: 1, Endpoints: edge},
				{Name: "web-edge2-remote", Remote: true, Priority: 2, Weight: 1},
				{Name: "app", Zone: "a", Priority: 3, Weight: 1, Endpoints: local[0].Endpoints},
				{Name: "app", Zone: "b", Priority: 3, Weight: 1, Endpoints: local[1].Endpoints},
			},
		},
		"AnotherDrains": {
			reason: "A cluster that drains should come after one that serves.",
			objects: []string{
				servicesWeb, serviceApp, sliceApp, strings.ReplaceAll(attachmentWeb, "  ports:", "  draining: true\n  ports:"),
				strings.ReplaceAll(attachmentWeb, "web-edge-remote", "web-edge2-remote"), proxySetEdge, sliceEdge,
			},
			want: append(append([]ir.Locality{}, local...),
				ir.Locality{Name: "web-edge2-remote", Remote: true, Priority: ir.PriorityRemote, Weight: 1},
				ir.Locality{Name: "web-edge-remote", Remote: true, Priority: ir.PriorityRemote + 1, Weight: 1, Endpoints: edge}),
		},
		"AnotherDrainsGlobal": {
			reason: "With affinity Global, a cluster that drains should come after this one, too.",
			objects: []string{
				services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: alt, port: 8080}], loadBalancing: {affinity: Global}}`),
				serviceAlt, sliceAlt, strings.ReplaceAll(attachmentWeb, "  ports:", "  draining: true\n  ports:"), proxySetEdge, sliceEdge,
			},
			want: []ir.Locality{{Name: "alt", Weight: 1, Endpoints: alt}, {Name: "web-edge-remote", Remote: true, Priority: 1, Weight: 1, Endpoints: edge}},
		},
		"DrainsAlone": {
			drains:  true,
			reason:  "Without a way to another cluster, this one should serve on.",
			objects: []string{servicesWeb, serviceApp, sliceApp, strings.ReplaceAll(attachmentWeb, "  ports:", "  drain: true\n  ports:")},
			want:    append(append([]ir.Locality{}, local...), ir.Locality{Name: "web-edge-remote", Remote: true, Priority: ir.PriorityRemote, Weight: 1}),
		},
		"RemoteWithoutPort": {
			reason:  "Remote endpoints without a port yet should not be used.",
			objects: []string{servicesWeb, serviceApp, attachmentWeb},
			want:    []ir.Locality{{Name: "app", Weight: 1}, {Name: "web-edge-remote", Remote: true, Priority: ir.PriorityRemote, Weight: 1}},
			problem: "Service shop/app has no pod that is ready",
		},
		"RemoteTLS": {
			reason: "Another cluster that terminates TLS should be reached with the name in its certificate.",
			objects: []string{
				services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], tls: {}}`), serviceApp, sliceApp, proxySetEdge, sliceEdge,
				strings.ReplaceAll(attachmentWeb, "  ports:", "  dnsName: web.example.ts.net\n  ports:"),
			},
			want: append(append([]ir.Locality{}, local...), ir.Locality{Name: "web-edge-remote", Remote: true, Priority: ir.PriorityRemote, Weight: 1, Endpoints: edge}),
		},
		"RemoteTLSWithoutName": {
			reason:  "Another cluster should not be used if its certificate cannot be verified.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], tls: {}}`), serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge},
			want:    local,
		},
		"Global": {
			reason: "With affinity Global, another cluster should get as much traffic as this one, even if several attachments lead to it.",
			objects: []string{
				services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: alt, port: 8080, weight: 3}], loadBalancing: {affinity: Global}}`),
				serviceAlt, sliceAlt, attachmentWeb, strings.ReplaceAll(attachmentWeb, "web-edge-remote", "web-edge2-remote"), proxySetEdge, sliceEdge,
			},
			want: []ir.Locality{
				{Name: "alt", Weight: 6, Endpoints: alt},
				{Name: "web-edge-remote", Remote: true, Weight: 3, Endpoints: edge},
				{Name: "web-edge2-remote", Remote: true, Weight: 3},
			},
		},
		"NotPreferLocal": {
			reason:  "failoverPolicy.preferLocal false should have the same effect as affinity Global.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: alt, port: 8080}], loadBalancing: {failoverPolicy: {preferLocal: false}}}`), serviceAlt, sliceAlt, attachmentWeb, proxySetEdge, sliceEdge},
			want:    []ir.Locality{{Name: "alt", Weight: 1, Endpoints: alt}, {Name: "web-edge-remote", Remote: true, Weight: 1, Endpoints: edge}},
		},
		"ExternalAddress": {
			reason:  "An address should be an endpoint without a look-up.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{kind: External, name: legacy, host: 192.0.2.1, port: 8080}]}`)},
			want:    []ir.Locality{{Name: "legacy", Weight: 1, Endpoints: pods(8080, "192.0.2.1")}},
		},
		"ExternalName2": {
			reason:  "A name should have no endpoint before it is resolved.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{kind: External, name: legacy, host: old.example.com, port: 8080}]}`)},
			want:    []ir.Locality{{Name: "legacy", Weight: 1}},
			problem: "the address of old.example.com is not known",
		},
		"Gateway": {
			reason:  "A Gateway as a backend should be refused, because it could be the same Gateway, even if a Service has its name.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{kind: TailscaleGateway, name: app, port: 8080}]}`), serviceApp, sliceApp},
			want:    []ir.Locality{{Name: "app", Weight: 1}},
			problem: "have the route name what the Gateway's routes name",
		},
		"ProxyProtocol": {
			reason:  "A backend with proxyProtocol should be refused, because Envoy does not send the PROXY protocol.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080, proxyProtocol: v2}]}`), serviceApp, sliceApp},
			want:    []ir.Locality{{Name: "app", Weight: 1}},
			problem: "remove proxyProtocol",
		},
		"HTTPS": {
			reason:  "A backend with protocol HTTPS should be refused without a BackendTLSPolicy, because Envoy would send it requests without TLS.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080, protocol: HTTPS, tls: {}}]}`), serviceApp, sliceApp},
			want:    []ir.Locality{{Name: "app", Weight: 1}},
			problem: "backend app has protocol HTTPS, for which a Gateway needs a BackendTLSPolicy; create one whose targetRefs name TailscaleServices web",
		},
		"HTTPSOfAnotherPort": {
			reason:  "So should it with a policy of another port.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{kind: External, name: legacy, host: 192.0.2.1, port: 8080, protocol: HTTPS}]}`), strings.Replace(tlsPolicyOfPort, `"80"`, `"81"`, 1), configMapCA},
			want:    []ir.Locality{{Name: "legacy", Weight: 1}},
			problem: "for which a Gateway needs a BackendTLSPolicy",
		},
		"HTTPSBeside": {
			reason:  "Other backends of the port should not be affected.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}, {name: alt, port: 8080, protocol: HTTPS}]}`), serviceApp, sliceApp, serviceAlt, sliceAlt},
			want:    append([]ir.Locality{{Name: "alt", Weight: 2}}, local...),
		},
		"HTTPSWithPolicy": {
			reason:  "With a BackendTLSPolicy, its endpoints should be used.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080, protocol: HTTPS}]}`), serviceApp, sliceApp, tlsPolicy},
			want:    local,
		},
		"HTTPSWithBadPolicy": {
			reason:  "With one that is not applied, nothing should be sent.",
			objects: []string{services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080, protocol: HTTPS}]}`), serviceApp, sliceApp, tlsPolicyOfPort},
			problem: "names ConfigMap ca, which is not known yet",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			s := snapshotOf(t, append([]string{routeToWeb}, tc.objects...)...)
			got := s.Target(ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP})
			if diff := cmp.Diff(tc.want, got.Localities); diff != "" {
				t.Errorf("%s\nlocalities: -want, +got\n%s", tc.reason, diff)
			}
			if (tc.problem == "") != (got.Problem == "") || !strings.Contains(got.Problem, tc.problem) {
				t.Errorf("%s\nproblem: want %q in %q", tc.reason, tc.problem, got.Problem)
			}
			if got.Drains != tc.drains {
				t.Errorf("%s\ndrains: want %v, got %v", tc.reason, tc.drains, got.Drains)
			}
			if got.Missing != tc.missing {
				t.Errorf("%s\nmissing: want %v, got %v", tc.reason, tc.missing, got.Missing)
			}
		})
	}
}

// TestRemoteCluster checks that a candidate has the ID of the cluster that it leads to.
func TestRemoteCluster(t *testing.T) {
	checked := services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080}], loadBalancing: {healthCheck: {enabled: true, path: /}}}`)
	s := snapshotOf(t, routeToWeb, checked, serviceApp, sliceApp, attachmentWeb, proxySetEdge, sliceEdge)
	got := map[bool]string{}
	for _, c := range s.Target(ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolHTTP}).Candidates {
		got[c.Remote] = c.Cluster
	}
	if diff := cmp.Diff(map[bool]string{false: "", true: "cluster-b"}, got); diff != "" {
		t.Errorf("clusters: -want, +got\n%s", diff)
	}
}

// TestHTTPSOfBytes checks that a TLSRoute, whose bytes are the client's with its TLS, needs no policy for a
// backend with protocol HTTPS: Envoy would speak TLS within TLS.
func TestHTTPSOfBytes(t *testing.T) {
	s := snapshotOf(t, strings.Replace(routeTo("TLSRoute", 80), "kind: TailscaleEndpoints, name: edge", "kind: TailscaleServices, name: web", 1),
		services(`{vipService: {ports: ["tcp:80"]}, backends: [{name: app, port: 8080, protocol: HTTPS}]}`), serviceApp, sliceApp)
	got := s.Target(ir.TargetKey{Kind: ir.TargetServices, Namespace: "shop", Name: "web", Port: 80, Protocol: ir.ProtocolTCP})
	if got == nil || got.Problem != "" || empty(got.Localities) {
		t.Errorf("want endpoints, got %+v", got)
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && clusters

package e2e

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

const (
	// mcsNamespace is the namespace of all cases: its proxies serve one case after the other.
	mcsNamespace = "mcs"

	// mcsPatience is how long the conformance suite of the Multi-Cluster Services API waits for a
	// ServiceImport.
	mcsPatience = 20 * time.Second

	// mcsSettled is for how long the suite checks that nothing changes.
	mcsSettled = 5 * time.Second
)

// mcsWorkload has the servers behind the Services of all cases. The names of the pods in the second cluster
// begin with far-.
const mcsWorkload = `apiVersion: v1
kind: Namespace
metadata: {name: mcs}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: mcs}
spec:
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      containers:
      - name: hello
        image: registry.k8s.io/e2e-test-images/agnhost:2.53
        args: [netexec, --http-port=42, --udp-port=42]
`

// An mcsCase is a case of the conformance suite of the Multi-Cluster Services API, at commit ded161a of
// kubernetes-sigs/mcs-api, folder conformance. Not here are its cases for what Tailscale Services lack:
// headless_service_dns.go looks up the addresses of pods, and a Tailscale Service leads to none of its hosts
// in particular; and the case "different port name on each cluster" of connectivity.go
// (StrictPortConflict) wants each port in another cluster, but Tailscale chooses one host for all ports of a service.
type mcsCase struct {
	name string

	// second is the Service of the second cluster. Nil for the cases of one exporting cluster.
	second func(s *corev1.Service)

	// first changes the Service of the first cluster.
	first func(s *corev1.Service)

	// exports changes the ServiceExports of both clusters.
	exports func(first, second *mcsv1beta1.ServiceExport)

	// unexported says that the case creates the ServiceExports.
	unexported bool

	check func(t *testing.T, m *mcs)
}

// An mcs has the objects of a case.
type mcs struct {
	name            string
	first, second   *corev1.Service
	export, export2 *mcsv1beta1.ServiceExport
}

// multiclusterServices runs the cases of the Multi-Cluster Services API over the two clusters of a set. The
// chart's value is changed while the provider runs.
func multiclusterServices(t *testing.T) {
	crds, err := apiserver.ModuleDir(t.Context(), "sigs.k8s.io/mcs-api")
	if err != nil {
		t.Fatal(err)
	}
	joinSet(t)
	for cluster, server := range map[string]string{"one": "web-hello", second: farPrefix + "-hello"} {
		kube(t, cluster, "", "apply", "--server-side", "-f", filepath.Join(crds, "config", "crd"))
		if out, err := labOutput(t, "--cluster="+cluster, "helm", "upgrade", "tailscale-gateway", "package/charts/tailscale-gateway", "-n", "crossplane-system", "--reset-then-reuse-values", "--set=provider.multiclusterServices=true", "--wait"); err != nil {
			t.Fatalf("cannot upgrade the chart on cluster %s: %v\n%s", cluster, err, out)
		}
		kube(t, cluster, fmt.Sprintf(mcsWorkload, server), "apply", "--server-side", "-f", "-")
	}
	// The namespace has proxies before the first case, and while one case follows the other.
	warm := &mcs{name: "warm", first: helloService("warm"), export: helloExport("warm")}
	put(t, "one", warm.first, warm.export)
	eventually(t, patience, "the first import", func() string {
		if i := warm.imported(t, second); i == nil || len(i.Spec.IPs) == 0 {
			return fmt.Sprintf("the ServiceImport is %+v", i)
		}
		return ""
	})
	for i, c := range mcsCases() {
		t.Run(c.name, func(t *testing.T) { c.run(t, fmt.Sprintf("hello-%d", i)) })
	}
	t.Run("RoutesToServiceImport", routesToServiceImport)
}

const importedRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: imported, namespace: mcs}
spec:
  gatewayClassName: envoy
  listeners: [{name: http, protocol: HTTP, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: imported, namespace: mcs}
spec:
  parentRefs: [{name: imported}]
  rules:
  - backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: routed, port: 42}]
`

// routesToServiceImport sends requests through a Gateway of one cluster to what the other one exports.
func routesToServiceImport(t *testing.T) {
	// Envoy Gateway looks for the kind only when it starts.
	kubectl(t, "rollout", "restart", "deployment/envoy-gateway", "-n", extensionNamespace)
	kubectl(t, "rollout", "status", "deployment/envoy-gateway", "-n", extensionNamespace, "--timeout=2m")
	put(t, second, helloService("routed"), helloExport("routed"))
	apply(t, importedRoute)
	address := addressOfGatewayIn(t, mcsNamespace, "imported")
	eventually(t, patience, "answers of the other cluster", func() string {
		out, err := labOutput(t, "curl", "--timeout=5s", "http://"+address+"/hostname")
		if err != nil || !strings.HasPrefix(out, farPrefix+"-hello-") {
			return fmt.Sprintf("%q %v", out, err)
		}
		return ""
	})
}

func (c mcsCase) run(t *testing.T, name string) {
	m := &mcs{name: name, first: helloService(name), export: helloExport(name), export2: helloExport(name)}
	if c.first != nil {
		c.first(m.first)
	}
	if c.exports != nil {
		c.exports(m.export, m.export2)
	}
	defer func() {
		for _, cluster := range []string{"one", second} {
			kube(t, cluster, "", "delete", "serviceexports.multicluster.x-k8s.io,services", name, "-n", mcsNamespace, "--ignore-not-found", "--wait=false")
		}
	}()
	put(t, "one", m.first)
	if !c.unexported {
		put(t, "one", m.export)
	}
	if c.second != nil {
		m.second = helloService(name)
		c.second(m.second)
		put(t, second, m.second)
		if !c.unexported {
			// The first ServiceExport is the older one, as in the suite. Timestamps have seconds.
			oldest := &mcsv1beta1.ServiceExport{}
			m.read(t, "one", "serviceexports", oldest)
			eventually(t, mcsPatience, "the next second", func() string {
				if !time.Now().After(oldest.CreationTimestamp.Add(time.Second)) {
					return "not yet"
				}
				return ""
			})
			put(t, second, m.export2)
		}
	}
	c.check(t, m)
}

func mcsCases() []mcsCase {
	same := func(*corev1.Service) {}
	reached := func(t *testing.T, m *mcs, port int, prefix string, times int) {
		t.Helper()
		for _, cluster := range []string{"one", second} {
			m.answers(t, cluster, port, prefix, times)
		}
	}
	return []mcsCase{
		// connectivity.go
		{
			name: "Connectivity to a service that is not exported should be inaccessible", unexported: true,
			check: func(t *testing.T, m *mcs) {
				for _, cluster := range []string{"one", second} {
					for range 20 {
						if out, err := m.request(t, cluster, 42); err == nil {
							t.Fatalf("cluster %s reaches a Service that is not exported: %s", cluster, out)
						}
					}
				}
			},
		},
		{
			name:  "Connectivity to an exported ClusterIP service should be accessible through DNS",
			check: func(t *testing.T, m *mcs) { reached(t, m, 42, "web-hello-", 1) },
		},
		{
			name:       "Connectivity to a ClusterIP service existing in two clusters but exported from one should only access the exporting cluster",
			unexported: true, second: same,
			check: func(t *testing.T, m *mcs) {
				put(t, "one", m.export)
				reached(t, m, 42, "web-hello-", 10)
			},
		},
		{
			name: "Connectivity to exported services with same port name but different port numbers on each cluster should only route traffic to the cluster that exposes the port",
			second: func(s *corev1.Service) {
				s.Spec.Ports = []corev1.ServicePort{{Name: "tcp", Port: 4242, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(42)}}
			},
			check: func(t *testing.T, m *mcs) { reached(t, m, 42, "web-hello-", 10) },
		},
		// service_import.go
		{
			name: "A ServiceImport should only exist as long as there's at least one exporting cluster",
			check: func(t *testing.T, m *mcs) {
				m.awaitImport(t, "one", nil)
				put(t, second, helloService(m.name), m.export2)
				m.keepsImport(t, "one")
				m.unexport(t, "one")
				m.keepsImport(t, "one")
				m.unexport(t, second)
				m.awaitNoImport(t, "one")
			},
		},
		{
			name: "Only labels and annotations specified as exported in the ServiceExport should be propagated to the ServiceImport",
			exports: func(first, _ *mcsv1beta1.ServiceExport) {
				first.Spec.ExportedLabels, first.Spec.ExportedAnnotations = map[string]string{"dummy-label": "true"}, map[string]string{"dummy-annotation": "true"}
			},
			check: func(t *testing.T, m *mcs) {
				m.awaitImport(t, "one", func(i *mcsv1beta1.ServiceImport) string {
					return has(i.Labels, m.export.Spec.ExportedLabels, m.first.Labels) + has(i.Annotations, m.export.Spec.ExportedAnnotations, m.first.Annotations)
				})
			},
		},
		{
			name: "A service exported on two clusters with conflicting annotations and labels should apply the conflict resolution policy and report a Conflict condition on each ServiceExport", second: same,
			exports: func(first, second *mcsv1beta1.ServiceExport) {
				first.Spec.ExportedLabels, first.Spec.ExportedAnnotations = map[string]string{"dummy-label": "true"}, map[string]string{"dummy-annotation": "true"}
				second.Spec.ExportedLabels, second.Spec.ExportedAnnotations = map[string]string{"dummy-label2": "true"}, map[string]string{"dummy-annotation2": "true"}
			},
			check: func(t *testing.T, m *mcs) {
				m.awaitConflict(t)
				m.awaitImport(t, "one", func(i *mcsv1beta1.ServiceImport) string {
					return has(i.Labels, m.export.Spec.ExportedLabels, m.export2.Spec.ExportedLabels) + has(i.Annotations, m.export.Spec.ExportedAnnotations, m.export2.Spec.ExportedAnnotations)
				})
			},
		},
		{
			name: "Exporting a ClusterIP service should create a ServiceImport of type ClusterSetIP in the service's namespace in each cluster. Unexporting should delete the ServiceImport",
			check: func(t *testing.T, m *mcs) {
				m.awaitCondition(t, "one", mcsv1beta1.ServiceExportConditionValid, metav1.ConditionTrue)
				m.importedUntilUnexported(t, mcsv1beta1.ClusterSetIP)
			},
		},
		{
			name: "The SessionAffinity for a ClusterSetIP ServiceImport should match the exported service's SessionAffinity",
			check: func(t *testing.T, m *mcs) {
				m.awaitImport(t, "one", func(i *mcsv1beta1.ServiceImport) string {
					return cmp.Diff([]any{m.first.Spec.SessionAffinity, m.first.Spec.SessionAffinityConfig}, []any{i.Spec.SessionAffinity, i.Spec.SessionAffinityConfig})
				})
			},
		},
		{
			name: "The InternalTrafficPolicy for a ClusterSetIP ServiceImport should match the exported service's InternalTrafficPolicy",
			first: func(s *corev1.Service) {
				s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
			},
			check: func(t *testing.T, m *mcs) {
				m.awaitImport(t, "one", func(i *mcsv1beta1.ServiceImport) string {
					return cmp.Diff(m.first.Spec.InternalTrafficPolicy, i.Spec.InternalTrafficPolicy)
				})
			},
		},
		{
			name: "The TrafficDistribution for a ClusterSetIP ServiceImport should match the exported service's TrafficDistribution",
			first: func(s *corev1.Service) {
				s.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferClose)
			},
			check: func(t *testing.T, m *mcs) {
				m.awaitImport(t, "one", func(i *mcsv1beta1.ServiceImport) string {
					return cmp.Diff(m.first.Spec.TrafficDistribution, i.Spec.TrafficDistribution)
				})
			},
		},
		{
			name: "An IP should be allocated for a ClusterSetIP ServiceImport for each IP family",
			check: func(t *testing.T, m *mcs) {
				i := m.awaitImport(t, "one", func(i *mcsv1beta1.ServiceImport) string {
					if len(i.Spec.IPs) == 0 {
						return "it has no IP"
					}
					return ""
				})
				var families []corev1.IPFamily
				for _, ip := range i.Spec.IPs {
					a, err := netip.ParseAddr(ip)
					if err != nil {
						t.Fatal(err)
					}
					families = append(families, map[bool]corev1.IPFamily{true: corev1.IPv4Protocol, false: corev1.IPv6Protocol}[a.Is4()])
				}
				if diff := cmp.Diff(i.Spec.IPFamilies, families); diff != "" {
					t.Errorf("IPs %v and IPFamilies: -want, +got:\n%s", i.Spec.IPs, diff)
				}
			},
		},
		{
			name: "The ports for a ClusterSetIP ServiceImport should match those of the exported service",
			check: func(t *testing.T, m *mcs) {
				m.awaitPorts(t, m.first.Spec.Ports)
			},
		},
		{
			name: "A ClusterIP service exported on two clusters should expose the union of the constituent service ports and raise a conflict",
			second: func(s *corev1.Service) {
				s.Spec.Ports = []corev1.ServicePort{s.Spec.Ports[0], {Name: "stcp", Port: 142, Protocol: corev1.ProtocolSCTP}}
			},
			check: func(t *testing.T, m *mcs) {
				m.awaitConflict(t)
				m.awaitPorts(t, append(slices.Clone(m.first.Spec.Ports), m.second.Spec.Ports[1]))
			},
		},
		{
			name: "A ClusterIP service exported on two clusters with conflicting ports should apply the conflict resolution policy and report a Conflict condition on each ServiceExport",
			second: func(s *corev1.Service) {
				s.Spec.Ports = s.Spec.Ports[:1]
				s.Spec.Ports[0].Port++
			},
			check: func(t *testing.T, m *mcs) {
				m.awaitConflict(t)
				m.awaitPorts(t, m.first.Spec.Ports)
			},
		},
		{
			name:  "Exporting a headless service should create a ServiceImport of type Headless in the service's namespace in each cluster. Unexporting should delete the ServiceImport",
			first: headless,
			check: func(t *testing.T, m *mcs) { m.importedUntilUnexported(t, mcsv1beta1.Headless) },
		},
		{
			name:  "No clusterset IP should be allocated for a Headless ServiceImport",
			first: headless,
			check: func(t *testing.T, m *mcs) {
				m.awaitImport(t, "one", nil)
				steady(t, "no IP", func() string {
					if i := m.imported(t, "one"); i == nil || len(i.Spec.IPs) > 0 {
						return fmt.Sprintf("the ServiceImport is %+v", i)
					}
					return ""
				})
			},
		},
		{
			name: "Exporting an ExternalName service should set ServiceExport Valid condition to False",
			first: func(s *corev1.Service) {
				s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
			},
			check: func(t *testing.T, m *mcs) {
				m.awaitCondition(t, "one", mcsv1beta1.ServiceExportConditionValid, metav1.ConditionFalse)
				steady(t, "no ServiceImport", func() string {
					if i := m.imported(t, "one"); i != nil {
						return "it exists"
					}
					return ""
				})
			},
		},
		{
			name:   "A service exported on two clusters with conflicting headlessness should apply the conflict resolution policy and report a Conflict condition on the ServiceExport",
			second: headless,
			check: func(t *testing.T, m *mcs) {
				m.awaitConflict(t)
				for _, cluster := range []string{"one", second} {
					m.awaitImport(t, cluster, isType(mcsv1beta1.ClusterSetIP))
				}
			},
		},
		// endpoint_slice.go
		{
			name: "Exporting a service should create an MCS EndpointSlice in the service's namespace in each cluster with the required MCS labels. Unexporting should delete the EndpointSlice.",
			check: func(t *testing.T, m *mcs) {
				for _, cluster := range []string{"one", second} {
					eventually(t, 3*mcsPatience, "the EndpointSlice on cluster "+cluster, func() string { return m.slice(t, cluster) })
				}
				m.unexport(t, "one")
				for _, cluster := range []string{"one", second} {
					eventually(t, mcsPatience, "no EndpointSlice on cluster "+cluster, func() string {
						if m.slice(t, cluster) == "" {
							return "it exists"
						}
						return ""
					})
				}
			},
		},
		// clusterip_service_dns.go
		{
			name: "A DNS lookup of the <service>.<ns>.svc.clusterset.local domain for a ClusterIP service should resolve to the clusterset IP",
			check: func(t *testing.T, m *mcs) {
				for _, cluster := range []string{"one", second} {
					i := m.awaitImport(t, cluster, func(i *mcsv1beta1.ServiceImport) string {
						if len(i.Spec.IPs) == 0 {
							return "it has no IP"
						}
						return ""
					})
					m.resolves(t, cluster, m.name+".mcs.svc.clusterset.local", "address", i.Spec.IPs...)
				}
			},
		},
		{
			name: "A DNS SRV query of the <service>.<ns>.svc.clusterset.local domain for a ClusterIP service should return valid SRV records",
			check: func(t *testing.T, m *mcs) {
				for _, cluster := range []string{"one", second} {
					name := m.name + ".mcs.svc.clusterset.local"
					m.resolves(t, cluster, name, "SRV", "42 "+name)
				}
			},
		},
		{
			name: "DNS lookups of the <service>.<ns>.svc.cluster.local domain for a ClusterIP service should only resolve local services",
			check: func(t *testing.T, m *mcs) {
				local := kube(t, "one", "", "get", "service", m.name, "-n", mcsNamespace, "-o=jsonpath={.spec.clusterIP}")
				m.resolves(t, "one", m.name+".mcs.svc.cluster.local", "address", local)
			},
		},
	}
}

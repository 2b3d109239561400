// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && clusters

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
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

func headless(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }

// helloService returns the Service of the suite.
func helloService(name string) *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: mcsNamespace,
			Annotations: map[string]string{"dummy-svc": "dummy"}, Labels: map[string]string{"dummy-svc": "dummy"},
		},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "hello"},
			Ports: []corev1.ServicePort{
				{Name: "tcp", Port: 42, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(42)},
				{Name: "udp", Port: 42, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(42)},
			},
			SessionAffinity:       corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10)}},
			IPFamilyPolicy:        ptr.To(corev1.IPFamilyPolicyPreferDualStack),
		},
	}
}

// helloExport returns the ServiceExport of the suite.
func helloExport(name string) *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{
		TypeMeta: metav1.TypeMeta{APIVersion: mcsv1beta1.GroupVersion.String(), Kind: mcsv1beta1.ServiceExportKindName},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: mcsNamespace,
			Annotations: map[string]string{"dummy-svcexport": "dummy"}, Labels: map[string]string{"dummy-svcexport": "dummy"},
		},
	}
}

// kube runs kubectl on a cluster.
func kube(t *testing.T, cluster, stdin string, args ...string) string {
	t.Helper()
	if cluster == second {
		return inSecond(t, stdin, args...)
	}
	out, err := tryRun(t, stdin, "kubectl", args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// put creates objects on a cluster.
func put(t *testing.T, cluster string, objects ...any) {
	t.Helper()
	for _, o := range objects {
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		kube(t, cluster, string(b), "create", "-f", "-")
	}
}

// read reads an object of the case. It reports whether the object exists.
func (m *mcs) read(t *testing.T, cluster, resource string, o any) bool {
	t.Helper()
	out := kube(t, cluster, "", "get", resource+".multicluster.x-k8s.io", m.name, "-n", mcsNamespace, "-o=json", "--ignore-not-found")
	if strings.TrimSpace(out) == "" {
		return false
	}
	if err := json.Unmarshal([]byte(out), o); err != nil {
		t.Fatal(err)
	}
	return true
}

// imported returns the ServiceImport, or nil.
func (m *mcs) imported(t *testing.T, cluster string) *mcsv1beta1.ServiceImport {
	t.Helper()
	i := &mcsv1beta1.ServiceImport{}
	if !m.read(t, cluster, "serviceimports", i) {
		return nil
	}
	return i
}

// awaitImport waits for a ServiceImport that passes a check, which may be nil.
func (m *mcs) awaitImport(t *testing.T, cluster string, check func(*mcsv1beta1.ServiceImport) string) *mcsv1beta1.ServiceImport {
	t.Helper()
	var i *mcsv1beta1.ServiceImport
	eventually(t, mcsPatience, "the ServiceImport on cluster "+cluster, func() string {
		if i = m.imported(t, cluster); i == nil {
			return "it does not exist"
		}
		if check == nil {
			return ""
		}
		return check(i)
	})
	return i
}

func (m *mcs) awaitNoImport(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, mcsPatience, "no ServiceImport on cluster "+cluster, func() string {
		if m.imported(t, cluster) != nil {
			return "it exists"
		}
		return ""
	})
}

func (m *mcs) keepsImport(t *testing.T, cluster string) {
	t.Helper()
	steady(t, "the ServiceImport on cluster "+cluster, func() string {
		if m.imported(t, cluster) == nil {
			return "it does not exist"
		}
		return ""
	})
}

// importedUntilUnexported checks that a ServiceImport of a type is in both clusters until the Service is not
// exported any more.
func (m *mcs) importedUntilUnexported(t *testing.T, want mcsv1beta1.ServiceImportType) {
	t.Helper()
	for _, cluster := range []string{"one", second} {
		m.awaitImport(t, cluster, isType(want))
	}
	m.unexport(t, "one")
	for _, cluster := range []string{"one", second} {
		m.awaitNoImport(t, cluster)
	}
}

func (m *mcs) awaitPorts(t *testing.T, want []corev1.ServicePort) {
	t.Helper()
	m.awaitImport(t, "one", func(i *mcsv1beta1.ServiceImport) string {
		var ports []mcsv1beta1.ServicePort
		for _, p := range want {
			ports = append(ports, mcsv1beta1.ServicePort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
		}
		byName := func(a, b mcsv1beta1.ServicePort) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(ports, byName)
		return cmp.Diff(ports, slices.SortedFunc(slices.Values(i.Spec.Ports), byName))
	})
}

func isType(want mcsv1beta1.ServiceImportType) func(*mcsv1beta1.ServiceImport) string {
	return func(i *mcsv1beta1.ServiceImport) string { return cmp.Diff(want, i.Spec.Type) }
}

// unexport deletes the ServiceExport.
func (m *mcs) unexport(t *testing.T, cluster string) {
	t.Helper()
	kube(t, cluster, "", "delete", "serviceexport.multicluster.x-k8s.io", m.name, "-n", mcsNamespace)
}

// awaitCondition waits for a condition of the ServiceExport.
func (m *mcs) awaitCondition(t *testing.T, cluster string, condition mcsv1beta1.ServiceExportConditionType, want metav1.ConditionStatus) {
	t.Helper()
	eventually(t, mcsPatience, fmt.Sprintf("%s=%s of the ServiceExport on cluster %s", condition, want, cluster), func() string {
		e := &mcsv1beta1.ServiceExport{}
		m.read(t, cluster, "serviceexports", e)
		if c := kmeta.FindStatusCondition(e.Status.Conditions, string(condition)); c == nil || c.Status != want {
			return fmt.Sprintf("it is %+v", c)
		}
		return ""
	})
}

// awaitConflict waits for the condition Conflict of both ServiceExports.
func (m *mcs) awaitConflict(t *testing.T) {
	t.Helper()
	for _, cluster := range []string{"one", second} {
		m.awaitCondition(t, cluster, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue)
	}
}

// request sends a request to the name of the cluster set from a cluster.
func (m *mcs) request(t *testing.T, cluster string, port int) (string, error) {
	t.Helper()
	return labOutput(t, "--cluster="+cluster, "curl", "--timeout=5s", fmt.Sprintf("http://%s.%s.svc.clusterset.local:%d/hostname", m.name, mcsNamespace, port))
}

// answers waits until a number of requests in a row get responses from pods with a prefix. The suite waits 20
// seconds for each; ours also wait for the control server to accept the hosts.
func (m *mcs) answers(t *testing.T, cluster string, port int, prefix string, times int) {
	t.Helper()
	took := eventually(t, patience, "answers on cluster "+cluster, func() string {
		for range times {
			got, err := m.request(t, cluster, port)
			if err != nil || !strings.HasPrefix(got, prefix) {
				return fmt.Sprintf("%q %v", got, err)
			}
		}
		return ""
	})
	t.Logf("cluster %s got answers after %s", cluster, took.Round(100*time.Millisecond))
}

// slice returns why no EndpointSlice has the labels of the API, another manager than Kubernetes, and an
// endpoint, or "".
func (m *mcs) slice(t *testing.T, cluster string) string {
	t.Helper()
	list := &discoveryv1.EndpointSliceList{}
	out := kube(t, cluster, "", "get", "endpointslices", "-n", mcsNamespace, "-o=json", "-l="+mcsv1beta1.LabelServiceName+"="+m.name+","+mcsv1beta1.LabelSourceCluster+","+discoveryv1.LabelManagedBy+"!=endpointslice-controller.k8s.io")
	if err := json.Unmarshal([]byte(out), list); err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		if len(s.Endpoints) > 0 && s.Labels[discoveryv1.LabelManagedBy] != "" {
			return ""
		}
	}
	return fmt.Sprintf("there are %d slices", len(list.Items))
}

// resolves waits until a name has exactly these records.
func (m *mcs) resolves(t *testing.T, cluster, name, records string, want ...string) {
	t.Helper()
	eventually(t, mcsPatience, "records of "+name, func() string {
		out, err := labOutput(t, "--cluster="+cluster, "lookup", "--type="+records, name)
		if err != nil {
			return out
		}
		return cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(strings.Split(strings.TrimSpace(out), "\n"))))
	})
}

// has returns why a map lacks wanted entries or has unwanted ones, or "".
func has(m, wanted, unwanted map[string]string) string {
	for k, v := range wanted {
		if m[k] != v {
			return fmt.Sprintf("%s is missing from %v", k, m)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(unwanted)) {
		if _, ok := m[k]; ok {
			return fmt.Sprintf("%s is in %v", k, m)
		}
	}
	return ""
}

// steady checks for a while that nothing changes.
func steady(t *testing.T, description string, check func() string) {
	t.Helper()
	for end := time.Now().Add(mcsSettled); time.Now().Before(end); {
		if problem := check(); problem != "" {
			t.Fatalf("%s: %s", description, problem)
		}
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && clusters

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
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
)

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

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package render

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/machineset"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// domain of every tailnet in the tests.
const domain = "tail1234.ts.net"

// eventTime is the time of all events.
var eventTime = metav1.Unix(1700000000, 0)

// control gives an object the status that its controller would write after success. Kinds without a
// controller are unchanged.
func (w *state) control(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	switch o.GetKind() {
	case v1alpha1.MachineSetKind:
		set := &v1alpha1.MachineSet{}
		from(t, o, set)
		s := machineset.Summarize(set, w.machines(t, set), nil, pods(t, set))
		status(t, o, &s)
	case v1alpha1.VIPServiceKind:
		v := &v1alpha1.VIPService{}
		from(t, o, v)
		s := w.vipService(t, v)
		status(t, o, &s)
	case v1alpha1.TailnetKind:
		s := v1alpha1.TailnetStatus{ManagedResourceStatus: ready(), AtProvider: v1alpha1.TailnetObservation{
			Name: domain, Organization: "example.org", MagicDNSSuffix: domain, DeviceCount: ptr(int64(3)), ServiceCount: ptr(int64(1)),
		}}
		s.SetConditions(condition(meta.TypeAuthenticated, meta.ReasonCredentialAccepted))
		status(t, o, &s)
	case "Deployment":
		d := &appsv1.Deployment{}
		from(t, o, d)
		s := appsv1.DeploymentStatus{Replicas: *d.Spec.Replicas, ReadyReplicas: *d.Spec.Replicas}
		status(t, o, &s)
	case "Service":
		// The API server assigns an address to each Service with a cluster address.
		if _, headless, _ := unstructured.NestedString(o.Object, "spec", "clusterIP"); !headless {
			if err := unstructured.SetNestedField(o.Object, "10.96.0.8", "spec", "clusterIP"); err != nil {
				t.Fatal(err)
			}
		}
	default:
		if strings.HasPrefix(o.GetAPIVersion(), v1alpha1.Group+"/") && o.GetKind() != v1alpha1.ProxySetKind &&
			o.GetKind() != v1alpha1.ServiceAttachmentKind && !strings.HasSuffix(o.GetKind(), "ProviderConfig") {
			s := ready()
			status(t, o, &s)
		}
	}
}

// pods returns the pods that the controller of MachineSets has created for a set: all are ready.
func pods(t *testing.T, set *v1alpha1.MachineSet) machineset.Pods {
	t.Helper()
	o, err := machineset.StatefulSet(set, proxy.Images{Tailscale: "tailscale:test", Agent: "agent:test"})
	if err != nil {
		t.Fatal(err)
	}
	s := &appsv1.StatefulSet{}
	from(t, o, s)
	n := int32(1)
	if s.Spec.Replicas != nil {
		n = *s.Spec.Replicas
	}
	s.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: s.GetGeneration(), Replicas: n, ReadyReplicas: n, AvailableReplicas: n, CurrentReplicas: n, UpdatedReplicas: n,
		CurrentRevision: o.GetName() + "-1", UpdateRevision: o.GetName() + "-1",
	}
	return machineset.Pods{StatefulSet: s}
}

// machines returns the Machines that the controller of MachineSets creates for a set, by name.
func (w *state) machines(t *testing.T, set *v1alpha1.MachineSet) map[string]*v1alpha1.Machine {
	t.Helper()
	out := make(map[string]*v1alpha1.Machine, len(set.Spec.Machines))
	for _, member := range set.Spec.Machines {
		m := machineset.Compose(set, member)
		m.Status = w.machine(t, m)
		out[member.Name] = m
	}
	return out
}

// machine returns the status of a Machine that is in the tailnet, hosts the services of its
// endpoints, and has ports for the targets of its config.
func (w *state) machine(t *testing.T, m *v1alpha1.Machine) v1alpha1.MachineStatus {
	t.Helper()
	n := number(m.GetNamespace() + "/" + m.GetName())
	agent := &v1alpha1.MachineAgentStatus{PodIP: fmt.Sprintf("10.244.0.%d", 2+n%250)}
	if m.GetLabels()[meta.LabelDirection] == strings.ToLower(string(v1alpha1.DirectionIngress)) {
		for _, o := range w.made(v1alpha1.ServiceAttachmentKind) {
			a := &v1alpha1.ServiceAttachment{}
			from(t, o, a)
			if a.Spec.Direction == v1alpha1.DirectionIngress && len(a.Spec.Addresses) > 0 && a.GetNamespace() == m.GetNamespace() && a.Spec.Endpoints == m.GetLabels()[meta.LabelEndpoints] {
				agent.Services = append(agent.Services, v1alpha1.HostedService{Name: string(a.Spec.ServiceName), Advertised: true, Accepted: true, HealthyBackends: 1, TotalBackends: 1})
			}
		}
	}
	set := m.GetName()[:strings.LastIndex(m.GetName(), "-")]
	for _, o := range w.made("ConfigMap") {
		if o.GetNamespace() != m.GetNamespace() || o.GetName() != set {
			continue
		}
		config := str(o, "data", egress.ConfigMapKey)
		c, err := egress.Decode(config)
		if err != nil {
			t.Fatal(err)
		}
		agent.EgressConfig = egress.Revision(config)
		for _, e := range c.Targets {
			agent.Egress = append(agent.Egress, v1alpha1.EgressPort{Port: e.ProxyPort, Protocol: e.Protocol, Target: e.Key, Ready: true})
		}
	}
	tags := w.tags(t, m.Spec.ProviderConfigReference.Name)
	for _, tag := range m.Spec.ForProvider.Tags {
		tags = append(tags, string(tag))
	}
	slices.Sort(tags)
	return v1alpha1.MachineStatus{ManagedResourceStatus: ready(), Agent: agent, AtProvider: v1alpha1.MachineObservation{
		NodeID: nodeID(m), Hostname: m.Spec.ForProvider.Hostname, Name: m.Spec.ForProvider.Hostname + "." + domain,
		Addresses: []string{fmt.Sprintf("100.64.0.%d", n), fmt.Sprintf("fd7a:115c:a1e0::%x", n)}, Tags: slices.Compact(tags), Online: ptr(true), Authorized: ptr(true),
	}}
}

// tags returns the default tags of the machines of a cluster provider config.
func (w *state) tags(t *testing.T, config string) []string {
	t.Helper()
	for _, o := range append(w.made(v1alpha1.ClusterProviderConfigKind), w.required...) {
		if o.GetKind() != v1alpha1.ClusterProviderConfigKind || o.GetName() != config {
			continue
		}
		tags, _, err := unstructured.NestedStringSlice(o.Object, "spec", "tags")
		if err != nil {
			t.Fatalf("%s: %v", id(o), err)
		}
		return tags
	}
	t.Fatalf("there is no %s %q", v1alpha1.ClusterProviderConfigKind, config)
	return nil
}

// vipService returns the status of a service that all of its machines host.
func (w *state) vipService(t *testing.T, v *v1alpha1.VIPService) v1alpha1.VIPServiceStatus {
	t.Helper()
	name := string(v.Spec.ForProvider.Name)
	n := number(name)
	s := v1alpha1.VIPServiceStatus{ManagedResourceStatus: ready(), AtProvider: v1alpha1.VIPServiceObservation{
		Name: name, DNSName: strings.TrimPrefix(name, "svc:") + "." + domain,
		Addresses: []string{fmt.Sprintf("100.100.0.%d", n), fmt.Sprintf("fd7a:115c:a1e0::1:%x", n)},
	}}
	for _, o := range w.made(v1alpha1.MachineSetKind) {
		set := &v1alpha1.MachineSet{}
		from(t, o, set)
		machines := w.machines(t, set)
		for _, key := range slices.Sorted(maps.Keys(machines)) {
			m := machines[key]
			for _, h := range m.Status.Agent.Services {
				if h.Name == name {
					s.AtProvider.Hosts = append(s.AtProvider.Hosts, v1alpha1.ServiceHost{
						NodeID: m.Status.AtProvider.NodeID, Name: m.Status.AtProvider.Name, Local: true, Online: true, Configured: true, Approval: "approved:auto",
					})
				}
			}
		}
	}
	return s
}

// ready returns the status of a managed resource after success.
func ready() xpv2.ManagedResourceStatus {
	s := xpv2.ManagedResourceStatus{}
	s.SetConditions(condition(xpv2.TypeReady, xpv2.ReasonAvailable), condition(xpv2.TypeSynced, xpv2.ReasonReconcileSuccess))
	return s
}

func condition(t xpv2.ConditionType, r xpv2.ConditionReason) xpv2.Condition {
	return xpv2.Condition{Type: t, Status: corev1.ConditionTrue, Reason: r, LastTransitionTime: eventTime}
}

// number returns a number from 1 to 250 for a name. It is the last byte of its addresses.
func number(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return 1 + h.Sum32()%250
}

func nodeID(m *v1alpha1.Machine) string {
	return "n" + strconv.FormatUint(uint64(number(m.GetNamespace()+"/"+m.GetName())), 10) + "CNTRL"
}

func ptr[T any](v T) *T { return &v }

func from(t *testing.T, o *unstructured.Unstructured, dst any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, dst); err != nil {
		t.Fatalf("%s: %v", id(o), err)
	}
}

func status(t *testing.T, o *unstructured.Unstructured, s any) {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		t.Fatalf("%s: %v", id(o), err)
	}
	o.Object["status"] = m
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
)

const (
	// maxObject is etcd's default limit, less a third for what Kubernetes adds.
	maxObject = (3 << 19) * 2 / 3

	mostMachines = 128
	mostTargets  = 2048
)

// TestSizes shows that the largest set that the schema allows fits into an object, with a long
// message for each port of each machine. So does each machine's status.
func TestSizes(t *testing.T) {
	var ports []plan.EgressPort
	for i := range mostTargets {
		name := fmt.Sprintf("%s-%04d", strings.Repeat("e", 58), i)
		ports = append(ports, plan.EgressPort{
			Target:  egress.Target{Key: "endpoint/" + name + "/65535/udp", ProxyPort: int32(10000 + i), Protocol: corev1.ProtocolUDP},
			Message: fmt.Sprintf("%s %d", strings.Repeat("ü", 600), i),
		})
	}
	agent := &v1alpha1.MachineAgentStatus{PodIP: "fd00:1111:2222:3333:4444:5555:6666:7777", EgressConfig: strings.Repeat("f", 64), Egress: plan.EgressStatus(ports)}

	set := machineSet()
	owned := map[string]*v1alpha1.Machine{}
	var last *v1alpha1.Machine
	for i := range mostMachines {
		member := v1alpha1.MachineSetMember{Name: fmt.Sprintf("%s-egress-%03d", strings.Repeat("w", 40), i), Hostname: strings.Repeat("h", 63)}
		set.Spec.Machines = append(set.Spec.Machines, member)
		m := Compose(set, member)
		m.Status.Agent = agent
		m.Status.AtProvider = v1alpha1.MachineObservation{
			NodeID: "n1234567890CNTRL", Name: strings.Repeat("h", 63) + ".tail1234567.ts.net", Hostname: strings.Repeat("h", 63), Online: ptr.To(true),
			Addresses: []string{"100.100.100.100", "fd7a:115c:a1e0:1111:2222:3333:4444:5555"}, Tags: tags(32),
		}
		m.SetConditions(xpv2.ReconcileError(fmt.Errorf("%s", strings.Repeat("e", 8192))))
		owned[m.GetName()] = m
		last = m
	}
	set.Status = Summarize(set, owned, nil, Pods{})
	if got := len(set.Status.Egress); got != mostTargets {
		t.Fatalf("want %d ports, got %d", mostTargets, got)
	}
	for kind, o := range map[string]any{"MachineSet": set, "Machine": last} {
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", kind, len(b))
		if len(b) > maxObject {
			t.Errorf("%s: want %d bytes at most, got %d", kind, maxObject, len(b))
		}
	}
}

func tags(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("tag:a-team-with-a-name-%02d", i))
	}
	return out
}

// TestEgressPorts shows how a set summarizes the ports of its machines.
func TestEgressPorts(t *testing.T) {
	set := machineSet("web-egress-0", "web-egress-1", "web-egress-2")
	port := func(n int32, target string, ready bool, message string) v1alpha1.EgressPort {
		return v1alpha1.EgressPort{Port: n, Protocol: corev1.ProtocolTCP, Target: target, Ready: ready, Message: message}
	}
	owned := map[string]*v1alpha1.Machine{}
	for name, ports := range map[string][]v1alpha1.EgressPort{
		"web-egress-0": {port(10001, "b", false, "first"), port(10000, "a", true, ""), port(10002, "c", true, "odd")},
		"web-egress-1": {port(10000, "a", true, ""), port(10001, "b", true, "not the first"), port(10002, "c", true, "too")},
		"web-egress-2": nil,
		// A surplus machine.
		"web-egress-3": {port(10000, "a", true, ""), port(10000, "old", true, ""), port(10001, "b", false, "third")},
	} {
		m := &v1alpha1.Machine{}
		m.Status.Agent = &v1alpha1.MachineAgentStatus{Egress: ports}
		owned[name] = m
	}
	owned["web-egress-4"] = &v1alpha1.Machine{}
	want := []v1alpha1.MachineSetEgressPort{
		{Port: 10000, Protocol: corev1.ProtocolTCP, Target: "a", ReadyMachines: 2},
		{Port: 10000, Protocol: corev1.ProtocolTCP, Target: "old"},
		{Port: 10001, Protocol: corev1.ProtocolTCP, Target: "b", ReadyMachines: 1, Message: "first"},
		{Port: 10002, Protocol: corev1.ProtocolTCP, Target: "c", ReadyMachines: 2, Message: "odd"},
	}
	if diff := cmp.Diff(want, Summarize(set, owned, nil, Pods{}).Egress); diff != "" {
		t.Errorf("Summarize(...): -want, +got:\n%s", diff)
	}
}

// TestServedPorts shows how a set summarizes the ports of one machine's pod.
func TestServedPorts(t *testing.T) {
	many := &v1alpha1.MachineAgentStatus{}
	for i := range 2 * maxPorts {
		many.Egress = append(many.Egress, v1alpha1.EgressPort{Port: int32(11000 - i), Protocol: corev1.ProtocolTCP})
	}
	cases := map[string]struct {
		reason string
		agent  *v1alpha1.MachineAgentStatus
		want   []string
	}{
		"None": {
			reason: "An agent of an earlier version, or of a pod without services, reports no ports.",
			agent:  &v1alpha1.MachineAgentStatus{Services: []v1alpha1.HostedService{{Name: "svc:web"}}},
		},
		"Services": {
			reason: "A port of several services is listed once, advertised or not. Other forms are left out.",
			agent: &v1alpha1.MachineAgentStatus{Services: []v1alpha1.HostedService{
				{Name: "svc:a", Ports: []string{"tcp:443", "tcp:80", "tcp:0", "tcp:70000", "quic", "udp:1"}},
				{Name: "svc:b", Ports: []string{"tcp:443", "tcp:8080"}, Advertised: true, UnhealthyPorts: []string{"tcp:8080"}},
			}},
			want: []string{"tcp:80", "tcp:443", "tcp:8080"},
		},
		"AllPorts": {
			reason: "All ports come first.",
			agent:  &v1alpha1.MachineAgentStatus{Services: []v1alpha1.HostedService{{Ports: []string{"tcp:80"}}, {Ports: []string{"do-not-validate"}}}},
			want:   []string{"do-not-validate", "tcp:80"},
		},
		"Egress": {
			reason: "A port of both protocols is two. Those that do not reach their target are listed, too.",
			agent: &v1alpha1.MachineAgentStatus{Egress: []v1alpha1.EgressPort{
				{Port: 10001, Protocol: corev1.ProtocolUDP, Ready: true}, {Port: 10001, Protocol: corev1.ProtocolTCP}, {Port: 10000, Protocol: corev1.ProtocolTCP},
			}},
			want: []string{"tcp:10000", "tcp:10001", "udp:10001"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, servedPorts(tc.agent)); diff != "" {
				t.Errorf("\n%s\nservedPorts(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	got := servedPorts(many)
	if len(got) != maxPorts || got[0] != fmt.Sprintf("tcp:%d", 11001-2*maxPorts) {
		t.Errorf("servedPorts(...): want the %d lowest ports, got %v", maxPorts, got)
	}
}

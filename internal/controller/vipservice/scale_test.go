// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestMachineEvents counts the services that are reconciled when a machine that hosts a thousand
// changes.
func TestMachineEvents(t *testing.T) {
	const services, idle = 1000, 10
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}}
	machine.Status.Agent = &v1alpha1.MachineAgentStatus{}
	var objects []client.Object
	for i := range services {
		name := fmt.Sprintf("svc:s%d", i)
		machine.Status.Agent.Services = append(machine.Status.Agent.Services, v1alpha1.HostedService{Name: name, Advertised: i >= idle, HealthyBackends: 1, TotalBackends: 1})
		v := &v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("s%d", i)}}
		v.Spec.ForProvider.Name = v1alpha1.ServiceName(name)
		objects = append(objects, v)
	}
	h := machineEvents(fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build())
	cases := map[string]struct {
		reason string
		change func(m *v1alpha1.Machine)
		want   int
	}{
		"Backend":  {reason: "A changed backend reconciles one service.", change: func(m *v1alpha1.Machine) { m.Status.Agent.Services[7].HealthyBackends = 0 }, want: 1},
		"PodIP":    {reason: "A change without relation to a service reconciles none.", change: func(m *v1alpha1.Machine) { m.Status.Agent.PodIP = "10.0.0.9" }},
		"Released": {reason: "A service that the machine no longer hosts is reconciled.", change: func(m *v1alpha1.Machine) { m.Status.Agent.Services = m.Status.Agent.Services[1:] }, want: 1},
		"Node":     {reason: "A machine with another name reconciles all of its services.", change: func(m *v1alpha1.Machine) { m.Status.AtProvider.Name = "renamed" }, want: services},
		"Offline":  {reason: "A machine that goes offline reconciles the services that list it.", change: func(m *v1alpha1.Machine) { m.Status.AtProvider.Online = ptr.To(false) }, want: services - idle},
		"LastSeen": {reason: "When an offline machine was last seen concerns no service.", change: func(m *v1alpha1.Machine) { m.Status.AtProvider.LastSeen = ptr.To(metav1.Now()) }},
		"Key":      {reason: "A key for the next login concerns no service.", change: func(m *v1alpha1.Machine) { m.Status.AtProvider.KeyIssued = true }},
		"NoReport": {reason: "A machine that no longer reports does too.", change: func(m *v1alpha1.Machine) { m.Status.Agent = nil }, want: services},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			updated := machine.DeepCopy()
			tc.change(updated)
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: machine, ObjectNew: updated}, q)
			if q.Len() != tc.want {
				t.Errorf("\n%s\nwant %d services, got %d", tc.reason, tc.want, q.Len())
			}
		})
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	h.Create(t.Context(), event.CreateEvent{Object: machine}, q)
	if q.Len() != services {
		t.Errorf("want a machine that is seen for the first time to be %d services, got %d", services, q.Len())
	}
}

// TestJoin checks that hosts that join a served service together are one change, and that nothing else
// waits.
func TestJoin(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	host := v1alpha1.ServiceHost{NodeID: "n1", Online: true, Configured: true, Approval: "approved:auto"}
	pending := v1alpha1.ServiceHost{NodeID: "n1", Online: true, Configured: true}
	idle, offered := v1alpha1.HostedService{Name: "svc:web"}, v1alpha1.HostedService{Name: "svc:web", Advertised: true}
	hosted := v1alpha1.HostedService{Name: "svc:web", Advertised: true, Accepted: true}
	cases := map[string]struct {
		reason       string
		hosts        []v1alpha1.ServiceHost
		old, updated v1alpha1.HostedService
		want         bool // Whether the service waits.
	}{
		"First":    {reason: "The first host of a service is seen at once.", old: idle, updated: offered},
		"Pending":  {reason: "A host that waits for an approval does not serve.", hosts: []v1alpha1.ServiceHost{pending}, old: idle, updated: offered},
		"Offers":   {reason: "A further host waits for others.", hosts: []v1alpha1.ServiceHost{host}, old: idle, updated: offered, want: true},
		"Accepted": {reason: "A further host that is accepted does, too.", hosts: []v1alpha1.ServiceHost{host}, old: offered, updated: hosted, want: true},
		"GivesUp":  {reason: "A host that withdraws its offer is seen at once.", hosts: []v1alpha1.ServiceHost{host}, old: offered, updated: idle},
		"Leaves":   {reason: "A host that leaves is seen at once.", hosts: []v1alpha1.ServiceHost{host}, old: hosted, updated: idle},
		"Refused":  {reason: "A host that control no longer accepts is seen at once.", hosts: []v1alpha1.ServiceHost{host}, old: hosted, updated: offered},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := &v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
			v.Spec.ForProvider.Name, v.Status.AtProvider.Hosts = "svc:web", tc.hosts
			h := machineEvents(fake.NewClientBuilder().WithScheme(s).WithObjects(v).Build())
			machine := func(s v1alpha1.HostedService) *v1alpha1.Machine {
				m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}}
				m.Status.Agent = &v1alpha1.MachineAgentStatus{Services: []v1alpha1.HostedService{s}}
				return m
			}
			c := clocktesting.NewFakeClock(apiTime)
			q := workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Clock: c})
			defer q.ShutDown()
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: machine(tc.old), ObjectNew: machine(tc.updated)}, q)
			if waits := q.Len() == 0; waits != tc.want {
				t.Fatalf("\n%s\nwant it to wait: %t, got %t", tc.reason, tc.want, waits)
			}
			c.Step(joinTime)
			if r, _ := q.Get(); r.Name != v.Name {
				t.Errorf("\n%s\nwant %s, got %s", tc.reason, v.Name, r.Name)
			}
		})
	}
}

// TestManyDevices measures one observation of a service's hosts in a large tailnet.
func TestManyDevices(t *testing.T) {
	const most = 64 << 10
	devices := make([]tailscale.Device, 10000)
	for i := range devices {
		devices[i] = tailscale.Device{NodeID: fmt.Sprintf("n%d", i), Name: "d.tail1234.ts.net", Tags: []string{"tag:k8s"}, ConnectedToControl: true}
	}
	hosts := []tailscale.Host{{NodeID: "n5"}, {NodeID: "n9999"}, {NodeID: "gone"}}
	rs := reports{"n5": {Advertised: true}, "n9999": {Advertised: true}}
	p := v1alpha1.VIPServiceParameters{HostTags: []v1alpha1.Tag{"tag:k8s"}}
	mg := object()
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			unseen(rs, hosts, devices)
			if got := serviceHosts(hosts, devices, rs, nil, nil); len(got) != 3 || !got[1].Online {
				b.Fatalf("serviceHosts(...): got %v", got)
			}
			if got := toApprove(p, rs, hosts, devices); len(got) != 2 {
				b.Fatalf("toApprove(...): got %v", got)
			}
			observeTags(mg, rs, devices)
		}
	})
	t.Log(r, r.MemString())
	if r.AllocedBytesPerOp() > most {
		t.Errorf("want at most %d bytes for three hosts among %d devices, got %d", most, len(devices), r.AllocedBytesPerOp())
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package vipservice

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func TestRollOut(t *testing.T) {
	type ports = []v1alpha1.ServicePort
	host := func(p ...string) report {
		return report{Advertised: true, Accepted: true, Ports: p, Machine: "m"}
	}
	cases := map[string]struct {
		reason   string
		reports  reports
		want     ports
		existing []string
		late     bool

		ports   ports
		missing *missingPort
	}{
		"Lags": {
			reason:  "A service with one host does not get a port that the host does not serve.",
			reports: reports{"n1": host("tcp:80")}, want: ports{"tcp:443", "tcp:80"}, existing: []string{"tcp:80"},
			ports: ports{"tcp:80"}, missing: &missingPort{port: "tcp:443", machine: "m"},
		},
		"LagsForLong": {
			reason:  "Nor does it later, as long as no host serves it.",
			reports: reports{"n1": host("tcp:80")}, want: ports{"tcp:443", "tcp:80"}, existing: []string{"tcp:80"}, late: true,
			ports: ports{"tcp:80"}, missing: &missingPort{port: "tcp:443", machine: "m"},
		},
		"Serves": {
			reason:  "It gets the port once the host serves it.",
			reports: reports{"n1": host("tcp:443", "tcp:80")}, want: ports{"tcp:443", "tcp:80"}, existing: []string{"tcp:80"},
			ports: ports{"tcp:443", "tcp:80"},
		},
		"OneOfTwo": {
			reason:  "All hosts are waited for.",
			reports: reports{"n1": host("tcp:443", "tcp:80"), "n2": host("tcp:80")}, want: ports{"tcp:443", "tcp:80"}, existing: []string{"tcp:80"},
			ports: ports{"tcp:80"}, missing: &missingPort{port: "tcp:443", machine: "m"},
		},
		"OneOfTwoForLong": {
			reason:  "One that stays behind does not hold up the others.",
			reports: reports{"n1": host("tcp:443", "tcp:80"), "n2": host("tcp:80")}, want: ports{"tcp:443", "tcp:80"}, existing: []string{"tcp:80"}, late: true,
			ports: ports{"tcp:443", "tcp:80"},
		},
		"Offline": {
			reason:  "A machine that is offline is no host.",
			reports: reports{"n1": host("tcp:443", "tcp:80"), "offline": host("tcp:80")}, want: ports{"tcp:443", "tcp:80"}, existing: []string{"tcp:80"},
			ports: ports{"tcp:443", "tcp:80"},
		},
		"NotAdvertised": {
			reason:  "Nor is one that does not offer the service.",
			reports: reports{"n1": {Ports: []string{"tcp:80"}}}, want: ports{"tcp:443"}, existing: []string{"tcp:80"},
			ports: ports{"tcp:443"},
		},
		"OldAgent": {
			reason:  "An agent that does not report its ports is not waited for.",
			reports: reports{"n1": host()}, want: ports{"tcp:443", "tcp:80"}, existing: []string{"tcp:80"},
			ports: ports{"tcp:443", "tcp:80"},
		},
		"Removed": {
			reason:  "A port is removed at once.",
			reports: reports{"n1": host("tcp:443", "tcp:80")}, want: ports{"tcp:80"}, existing: []string{"tcp:443", "tcp:80"},
			ports: ports{"tcp:80"},
		},
		"Replaced": {
			reason:  "A service keeps its only port until the hosts serve another one.",
			reports: reports{"n1": host("tcp:80")}, want: ports{"tcp:443"}, existing: []string{"tcp:80"},
			ports: ports{"tcp:80"}, missing: &missingPort{port: "tcp:443", machine: "m"},
		},
		"All": {
			reason:  "All ports follow a list at once, because proxies change after the service.",
			reports: reports{"n1": host("tcp:80")}, want: ports{v1alpha1.ServicePortAll}, existing: []string{"tcp:80"},
			ports: ports{v1alpha1.ServicePortAll},
		},
		"FromAll": {
			reason:  "So does a list all ports.",
			reports: reports{"n1": host(string(v1alpha1.ServicePortAll))}, want: ports{"tcp:80"}, existing: []string{string(v1alpha1.ServicePortAll)},
			ports: ports{"tcp:80"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, missing := tc.reports.rollOut(tc.want, tc.existing, func(id string) bool { return id == "offline" }, tc.late)
			if diff := cmp.Diff(tc.ports, got); diff != "" {
				t.Errorf("\n%s\nrollOut(...): -want ports, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.missing, missing, cmp.AllowUnexported(missingPort{})); diff != "" {
				t.Errorf("\n%s\nrollOut(...): -want missing, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPortAdded follows a port that is added while the only host lags.
func TestPortAdded(t *testing.T) {
	f := &fakeAPI{
		services: map[string]tailscale.Service{"svc:web": service(func(s *tailscale.Service) { s.Ports = []string{"tcp:80"} })},
		hosts:    []tailscale.Host{{NodeID: "n1", State: "ready", Approval: "approved:manual"}},
		devices:  []tailscale.Device{{NodeID: "n1", Name: "n1.tail1234.ts.net", Tags: []string{"tag:k8s"}, ConnectedToControl: true}},
	}
	clock := clocktesting.NewFakeClock(apiTime)
	mg, ports := object(), newPortsCache()
	var serves []string
	pass := func() {
		t.Helper()
		_, c := connect(t, f, reports{"n1": {Advertised: true, Accepted: true, Healthy: 2, Total: 2, Ports: serves, Machine: "set-0"}}, mg)
		c.hosts, c.ports = newHostsCache(time.Minute, clock), ports
		e, err := c.Connect(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		o, err := e.Observe(t.Context(), mg)
		if err != nil {
			t.Fatalf("Observe(...): %v", err)
		}
		if o.ResourceUpToDate {
			return
		}
		if _, err := e.Update(t.Context(), mg); err != nil {
			t.Fatalf("Update(...): %v", err)
		}
	}
	check := func(reason string, want []string, status corev1.ConditionStatus, cause xpv2.ConditionReason) {
		t.Helper()
		if diff := cmp.Diff(want, tailscale.Sorted(f.services["svc:web"].Ports)); diff != "" {
			t.Errorf("\n%s\nports: -want, +got:\n%s", reason, diff)
		}
		if c := mg.GetCondition(meta.TypePortsHealthy); c.Status != status || c.Reason != cause {
			t.Errorf("\n%s\nwant PortsHealthy %s %s, got %s %s", reason, status, cause, c.Status, c.Reason)
		}
	}
	serves = []string{"tcp:80"}
	pass()
	check("The service keeps its ports while the host lags.", []string{"tcp:80"}, corev1.ConditionUnknown, "")
	if got := ports.next(mg.GetUID(), time.Hour); got != pollPorts {
		t.Errorf("want the service observed again after %s, got %s", pollPorts, got)
	}
	clock.Step(portPatience)
	pass()
	check("After a minute a condition says so.", []string{"tcp:80"}, corev1.ConditionFalse, meta.ReasonPortNotServed)
	serves = []string{"tcp:443", "tcp:80"}
	pass()
	check("The port is added once the host serves it.", []string{"tcp:443", "tcp:80"}, corev1.ConditionTrue, meta.ReasonPortsHealthy)
}

// TestWithdraw checks which machines are withdrawn because a backend does not answer.
func TestWithdraw(t *testing.T) {
	all := []string{"tcp:443", "tcp:80"}
	whole := report{Advertised: true, Accepted: true, Healthy: 2, Total: 2, Ports: all}
	partial := report{Advertised: true, Accepted: true, Healthy: 1, Total: 2, Ports: all, Unhealthy: []string{"tcp:443"}}
	retired := partial
	retired.Advertised = false
	unreported := whole
	unreported.Ports = nil
	soon := apiTime.Add(renewBefore - time.Second)
	host := func(id string, local, online bool) v1alpha1.ServiceHost {
		return v1alpha1.ServiceHost{NodeID: id, Local: local, Online: online, Configured: true, Approval: "approved:manual"}
	}
	ours, theirs := []v1alpha1.ServiceHost{host("n1", true, true), host("n2", true, true)}, []v1alpha1.ServiceHost{host("n1", true, true), host("t1", false, true)}
	const withdrawn, serving = "withdrawn", "serving"
	cases := map[string]struct {
		reason  string
		reports reports
		hosts   []v1alpha1.ServiceHost
		peers   peerHealth

		// partial is for how long a port has not answered.
		partial time.Duration
		// end is until when n1 is withdrawn.
		end time.Time
		// want is what changes for n1.
		want   string
		status corev1.ConditionStatus
	}{
		"OtherHost": {
			reason:  "A host with a dead port is withdrawn if another one serves all ports.",
			reports: reports{"n1": partial, "n2": whole}, hosts: ours, want: withdrawn, status: corev1.ConditionUnknown,
		},
		"NoOther": {
			reason:  "It stays if there is no other host.",
			reports: reports{"n1": partial}, hosts: ours[:1], status: corev1.ConditionFalse,
		},
		"OtherDead": {
			reason:  "It stays if the other one has a dead port, too.",
			reports: reports{"n1": partial, "n2": partial}, hosts: ours, status: corev1.ConditionFalse,
		},
		"OtherOffline": {
			reason:  "It stays if the other one is offline.",
			reports: reports{"n1": partial, "n2": whole}, hosts: []v1alpha1.ServiceHost{host("n1", true, true), host("n2", true, false)}, status: corev1.ConditionFalse,
		},
		"OtherUnknown": {
			reason:  "It stays if it is not known which ports the other one serves.",
			reports: reports{"n1": partial, "n2": unreported}, hosts: ours, status: corev1.ConditionFalse,
		},
		"OtherCluster": {
			reason:  "A host of another cluster that serves all ports is enough.",
			reports: reports{"n1": partial}, hosts: theirs, peers: peerHealth{"t1": registry.Health{Ready: 1, Whole: 1}}, partial: elsewhereAfter, want: withdrawn, status: corev1.ConditionUnknown,
		},
		"OtherClusterSoon": {
			reason:  "The record of another cluster may be from before the port died there, too.",
			reports: reports{"n1": partial}, hosts: theirs, peers: peerHealth{"t1": registry.Health{Ready: 1, Whole: 1}}, partial: elsewhereAfter - time.Second, status: corev1.ConditionUnknown,
		},
		"OtherClusterRestart": {
			reason:  "A withdrawal goes on after a restart of the provider, which does not know for how long the port has been dead.",
			reports: reports{"n1": retired}, hosts: theirs[1:], peers: peerHealth{"t1": registry.Health{Ready: 1, Whole: 1}}, end: soon, want: withdrawn, status: corev1.ConditionUnknown,
		},
		"OtherClusterOld": {
			reason:  "A cluster of an older version does not say that its hosts serve all ports.",
			reports: reports{"n1": partial}, hosts: theirs, peers: peerHealth{"t1": registry.Health{Ready: 1}}, status: corev1.ConditionFalse,
		},
		"OtherClusterPartial": {
			reason:  "Which host of another cluster serves all ports is known only if all do.",
			reports: reports{"n1": partial}, hosts: theirs, peers: peerHealth{"t1": registry.Health{Ready: 2, Whole: 1}}, status: corev1.ConditionFalse,
		},
		"Renewed": {
			reason:  "A withdrawal is renewed before it ends.",
			reports: reports{"n1": retired, "n2": whole}, hosts: ours[1:], end: soon, want: withdrawn, status: corev1.ConditionUnknown,
		},
		"Withdrawn": {
			reason:  "Before that nothing changes.",
			reports: reports{"n1": retired, "n2": whole}, hosts: ours[1:], end: apiTime.Add(withdrawFor), status: corev1.ConditionUnknown,
		},
		"Back": {
			reason:  "A withdrawn host serves again if no other one serves all ports any longer.",
			reports: reports{"n1": retired, "n2": partial}, hosts: ours[1:], end: apiTime.Add(withdrawFor), want: serving, status: corev1.ConditionFalse,
		},
		"Healthy": {
			reason:  "A host without a dead port needs nothing.",
			reports: reports{"n1": whole, "n2": whole}, hosts: ours, status: corev1.ConditionUnknown,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := object()
			mg.Status.AtProvider = v1alpha1.VIPServiceObservation{Name: "svc:web", Ports: []string{"tcp:443", "tcp:80"}, Hosts: tc.hosts}
			var objs []client.Object
			for _, id := range []string{"n1", "n2"} {
				objs = append(objs, machineWithSecret(id, tc.end)...)
			}
			kube := newKube(t, objs...)
			e := &external{
				pods: kubePods{kube: kube}, ports: newPortsCache(), record: &recorder{}, reported: tc.reports, peers: tc.peers,
				hosts: newHostsCache(time.Minute, clocktesting.NewFakePassiveClock(apiTime)),
			}
			e.ports.partialFor(mg.GetUID(), true, apiTime.Add(-tc.partial))
			if err := e.observePorts(t.Context(), mg); err != nil {
				t.Fatalf("observePorts(...): %v", err)
			}
			got := ""
			for _, w := range e.withdraw {
				if meta.NodeIDOf(&w.machine) != "n1" {
					continue
				}
				got = serving
				if !w.end.IsZero() {
					got = withdrawn
				}
			}
			if got != tc.want {
				t.Errorf("\n%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if c := mg.GetCondition(meta.TypePortsHealthy); c.Status != tc.status {
				t.Errorf("\n%s\nwant PortsHealthy %s, got %s: %s", tc.reason, tc.status, c.Status, c.Message)
			}
			if err := e.withdrawHosts(t.Context(), mg); err != nil {
				t.Fatalf("withdrawHosts(...): %v", err)
			}
			m := objs[0].(*v1alpha1.Machine)
			end, err := e.pods.withdrawnUntil(context.Background(), m, "svc:web")
			if err != nil {
				t.Fatalf("withdrawnUntil(...): %v", err)
			}
			want := map[string]time.Time{withdrawn: apiTime.Add(withdrawFor), "": tc.end}[tc.want]
			if !end.Equal(want) {
				t.Errorf("\n%s\nwant n1 withdrawn until %v, got %v", tc.reason, want, end)
			}
		})
	}
}

// machineWithSecret returns the machine of a node, and its config Secret with a withdrawal.
func machineWithSecret(id string, end time.Time) []client.Object {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set-" + id, UID: "uid-set", Annotations: map[string]string{meta.AnnotationNodeID: id}}}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: m.Name + meta.ConfigSecretSuffix, OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(m, v1alpha1.MachineGroupVersionKind),
	}}}
	if !end.IsZero() {
		s.Annotations = map[string]string{meta.AnnotationWithdraw("svc:web"): end.Format(time.RFC3339)}
	}
	return slices.Clip([]client.Object{m, s})
}

// TestDeadPortNamed checks that the condition names the port.
func TestDeadPortNamed(t *testing.T) {
	c := portsCondition(xpv2.Condition{}, "svc:web", []string{"tcp:443", "tcp:443"}, nil)
	want := "The backend of tcp:443 does not answer, and no host of svc:web is known to serve all ports; clients reach the other ports"
	if c == nil || c.Message != want {
		t.Errorf("want %q, got %v", want, c)
	}
}

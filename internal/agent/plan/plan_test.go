// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

func attachment(name, service string, ports map[int32]string) v1alpha1.ServiceAttachment {
	a := v1alpha1.ServiceAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ServiceAttachmentSpec{
			Direction:   v1alpha1.DirectionIngress,
			ServiceName: v1alpha1.ServiceName(service),
			Addresses:   []string{"100.100.0.1"},
			HealthCheck: v1alpha1.AttachmentHealthCheck{
				Interval:           metav1.Duration{Duration: 5 * time.Second},
				Timeout:            metav1.Duration{Duration: 2 * time.Second},
				HealthyThreshold:   1,
				UnhealthyThreshold: 2,
			},
		},
	}
	for port, host := range ports {
		a.Spec.Ports = append(a.Spec.Ports, v1alpha1.AttachmentPort{
			Port:    port,
			Backend: &v1alpha1.AttachmentBackend{Host: host, Port: 8080},
		})
	}
	return a
}

func tgt(host string) probe.Target {
	return probe.Target{Host: host, Port: 8080, Interval: 5 * time.Second, Timeout: 2 * time.Second, HealthyThreshold: 1, UnhealthyThreshold: 2}
}

func TestServices(t *testing.T) {
	deleted := attachment("gone", "svc:gone", map[int32]string{80: "gone.default.svc"})
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	egress := attachment("out", "svc:out", map[int32]string{80: "out.default.svc"})
	egress.Spec.Direction = v1alpha1.DirectionEgress
	web := attachment("web", "svc:web", map[int32]string{80: "10.96.0.10"})
	early := attachment("early", "svc:web", map[int32]string{80: "10.96.0.3"})
	early.Spec.Addresses = nil
	quiet := attachment("web", "svc:web", map[int32]string{80: "10.96.0.10"})
	quiet.Spec.HealthCheck.ResolveOnly = true
	quietTarget := tgt("10.96.0.10")
	quietTarget.ResolveOnly = true
	draining := *web.DeepCopy()
	draining.Spec.Drain = true
	webHandlers := Handlers{80: {Forward: "10.96.0.10:8080"}}
	unhealthy := probe.Status{Health: probe.Unhealthy, Reason: "connection refused"}

	cases := map[string]struct {
		reason string
		input  Input
		want   []Service
	}{
		"Healthy": {
			reason: "A service with a healthy backend is advertised.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{web},
				Health:      map[probe.Target]probe.Status{tgt("10.96.0.10"): {Health: probe.Healthy}},
			},
			want: []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Advertise: true, Healthy: 1}},
		},
		"Unhealthy": {
			reason: "A service without a healthy backend keeps its handlers and is not advertised.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{web},
				Health:      map[probe.Target]probe.Status{tgt("10.96.0.10"): unhealthy},
				Advertised:  []string{"svc:web"},
			},
			want: []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Unhealthy: []int32{80}, Message: "No backend answers: 10.96.0.10:8080 (connection refused)"}},
		},
		"UnknownWasAdvertised": {
			reason: "A service of unknown health stays advertised.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{web},
				Advertised:  []string{"svc:web"},
			},
			want: []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Advertise: true}},
		},
		"UnknownWasNot": {
			reason: "A new service is not advertised before its backend answered.",
			input:  Input{Attachments: []v1alpha1.ServiceAttachment{web}},
			want:   []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Undecided: true, Message: messageProbing}},
		},
		"ResolveOnly": {
			reason: "A backend without probes gets a ResolveOnly target.",
			input:  Input{Attachments: []v1alpha1.ServiceAttachment{quiet}, Health: map[probe.Target]probe.Status{quietTarget: {Health: probe.Healthy}}},
			want:   []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{quietTarget}, Advertise: true, Healthy: 1}},
		},
		"Stopping": {
			reason: "Nothing is advertised while the pod stops, but handlers stay for live connections.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{web},
				Health:      map[probe.Target]probe.Status{tgt("10.96.0.10"): {Health: probe.Healthy}},
				Stopping:    true,
			},
			want: []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Healthy: 1, Message: messageStopping}},
		},
		"OneOfTwoBackends": {
			reason: "One healthy backend is enough, and a backend behind two ports counts once.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{attachment("web", "svc:web", map[int32]string{80: "10.96.0.1", 81: "10.96.0.1", 82: "10.96.0.2"})},
				Health: map[probe.Target]probe.Status{
					tgt("10.96.0.1"): unhealthy,
					tgt("10.96.0.2"): {Health: probe.Healthy},
				},
			},
			want: []Service{{
				Name:      "svc:web",
				Handlers:  Handlers{80: {Forward: "10.96.0.1:8080"}, 81: {Forward: "10.96.0.1:8080"}, 82: {Forward: "10.96.0.2:8080"}},
				Targets:   []probe.Target{tgt("10.96.0.1"), tgt("10.96.0.2")},
				Advertise: true,
				Healthy:   1,
				Unhealthy: []int32{80, 81},
			}},
		},
		"Withdrawn": {
			reason: "A service of which one backend does not answer is withdrawn if the provider asks for that.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{attachment("web", "svc:web", map[int32]string{80: "10.96.0.1", 81: "10.96.0.2"})},
				Health:      map[probe.Target]probe.Status{tgt("10.96.0.1"): unhealthy, tgt("10.96.0.2"): {Health: probe.Healthy}},
				Advertised:  []string{"svc:web"},
				Withdrawn:   map[string]bool{"svc:web": true},
			},
			want: []Service{{
				Name:      "svc:web",
				Handlers:  Handlers{80: {Forward: "10.96.0.1:8080"}, 81: {Forward: "10.96.0.2:8080"}},
				Targets:   []probe.Target{tgt("10.96.0.1"), tgt("10.96.0.2")},
				Healthy:   1,
				Unhealthy: []int32{80},
				Message:   "Withdrawn while another host serves all ports, because a backend does not answer: 10.96.0.1:8080 (connection refused)",
			}},
		},
		"WithdrawnAnswers": {
			reason: "Once all backends answer, a withdrawal has no effect.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{web},
				Health:      map[probe.Target]probe.Status{tgt("10.96.0.10"): {Health: probe.Healthy}},
				Withdrawn:   map[string]bool{"svc:web": true},
			},
			want: []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Advertise: true, Healthy: 1}},
		},
		"Drained": {
			reason: "A service that drains is withdrawn if the provider asks for that, although its backends answer.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{draining},
				Health:      map[probe.Target]probe.Status{tgt("10.96.0.10"): {Health: probe.Healthy}},
				Advertised:  []string{"svc:web"},
				Withdrawn:   map[string]bool{"svc:web": true},
			},
			want: []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Healthy: 1, Message: "Withdrawn while another cluster serves: the service drains in this cluster"}},
		},
		"Drains": {
			reason: "A service that drains stays advertised until the provider knows another cluster that serves.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{draining},
				Health:      map[probe.Target]probe.Status{tgt("10.96.0.10"): {Health: probe.Healthy}},
				Advertised:  []string{"svc:web"},
			},
			want: []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Advertise: true, Healthy: 1}},
		},
		"OwnAddress": {
			reason: "Nothing is forwarded to the pod itself or to its node, whether or not another backend is healthy.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{attachment("web", "svc:web", map[int32]string{80: "10.96.0.1", 81: "127.0.0.1", 82: "rebinds.example.com", 83: "localhost"})},
				Health: map[probe.Target]probe.Status{
					tgt("127.0.0.1"):           {Health: probe.Unhealthy, Reason: "its address is refused: it is a loopback address"},
					tgt("10.96.0.1"):           {Health: probe.Healthy},
					tgt("localhost"):           {Health: probe.Healthy},
					tgt("rebinds.example.com"): {Health: probe.Unhealthy, Reason: "its address is refused: it is a link-local address"},
				},
			},
			want: []Service{{
				Name:      "svc:web",
				Handlers:  Handlers{80: {Forward: "10.96.0.1:8080"}},
				Targets:   []probe.Target{tgt("10.96.0.1"), tgt("127.0.0.1"), tgt("localhost"), tgt("rebinds.example.com")},
				Advertise: true,
				Healthy:   2,
				Unhealthy: []int32{81, 82},
			}},
		},
		"NotOurs": {
			reason: "Attachments for egress, and those being deleted, are ignored.",
			input:  Input{Attachments: []v1alpha1.ServiceAttachment{deleted, egress}},
			want:   []Service{},
		},
		"TwoClaimOne": {
			reason: "A service that two attachments claim goes to the first by name.",
			input: Input{Attachments: []v1alpha1.ServiceAttachment{
				attachment("z", "svc:web", map[int32]string{80: "z.default.svc"}),
				web,
			}},
			want: []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Undecided: true, Message: messageProbing}},
		},
		"NoAddress": {
			reason: "A service that is not in the tailnet yet is probed but not advertised: the name may belong to another service.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{early},
				Health:      map[probe.Target]probe.Status{tgt("10.96.0.3"): {Health: probe.Healthy}},
			},
			want: []Service{{Name: "svc:web", Targets: []probe.Target{tgt("10.96.0.3")}, Healthy: 1, Message: messageNoAddress}},
		},
		"OneOfTwoHasAddress": {
			reason: "The attachment with the service's addresses gets the service, not one that may never get addresses.",
			input:  Input{Attachments: []v1alpha1.ServiceAttachment{early, web}},
			want:   []Service{{Name: "svc:web", Handlers: webHandlers, Targets: []probe.Target{tgt("10.96.0.10")}, Undecided: true, Message: messageProbing}},
		},
		"ManyUnhealthy": {
			reason: "A message names three backends at most.",
			input: Input{
				Attachments: []v1alpha1.ServiceAttachment{attachment("web", "svc:web", map[int32]string{1: "10.0.0.1", 2: "10.0.0.2", 3: "10.0.0.3", 4: "10.0.0.4", 5: "10.0.0.5"})},
				Health:      map[probe.Target]probe.Status{tgt("10.0.0.1"): unhealthy, tgt("10.0.0.2"): unhealthy, tgt("10.0.0.3"): unhealthy, tgt("10.0.0.4"): unhealthy, tgt("10.0.0.5"): unhealthy},
			},
			want: []Service{{
				Name:      "svc:web",
				Handlers:  Handlers{1: {Forward: "10.0.0.1:8080"}, 2: {Forward: "10.0.0.2:8080"}, 3: {Forward: "10.0.0.3:8080"}, 4: {Forward: "10.0.0.4:8080"}, 5: {Forward: "10.0.0.5:8080"}},
				Targets:   []probe.Target{tgt("10.0.0.1"), tgt("10.0.0.2"), tgt("10.0.0.3"), tgt("10.0.0.4"), tgt("10.0.0.5")},
				Unhealthy: []int32{1, 2, 3, 4, 5},
				Message:   "No backend answers: 10.0.0.1:8080 (connection refused), 10.0.0.2:8080 (connection refused), 10.0.0.3:8080 (connection refused) and 2 more",
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Services(tc.input)); diff != "" {
				t.Errorf("\n%s\nServices(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBackends checks what tailscaled forwards connections to: addresses alone.
func TestBackends(t *testing.T) {
	const listen = "127.36.0.1:16464"
	byName := map[string][]Termination{"svc:web": {{Listen: netip.MustParseAddrPort(listen), Backend: "web.example.com.:8080"}}}
	cases := map[string]struct {
		reason       string
		status       probe.Status
		serving      string
		want         string
		terminations map[string][]Termination
	}{
		"Address": {
			reason: "A name with a single address is that address.",
			status: probe.Status{Health: probe.Healthy, Address: netip.MustParseAddr("10.96.0.10")}, want: "10.96.0.10:8080",
		},
		"IPv6": {
			reason: "Of either family.",
			status: probe.Status{Health: probe.Healthy, Address: netip.MustParseAddr("fd00::1")}, want: "[fd00::1]:8080",
		},
		"Unhealthy": {
			reason: "It stays while the backend does not answer.",
			status: probe.Status{Health: probe.Unhealthy, Reason: "timed out", Address: netip.MustParseAddr("10.96.0.10")}, want: "10.96.0.10:8080",
		},
		"Several": {
			reason: "The agent picks one of several addresses for each connection, and checks it.",
			status: probe.Status{Health: probe.Healthy}, serving: "10.96.0.10:8080", want: listen, terminations: byName,
		},
		"Restarted": {
			reason: "A restarted agent keeps the address until it has probed it.", serving: "10.96.0.10:8080", want: "10.96.0.10:8080",
		},
		"OtherPort": {
			reason: "But not that of another backend.", serving: "10.96.0.10:8081", want: listen, terminations: byName,
		},
		"Named": {
			reason: "A name that an older version has written is not kept.", serving: "web.example.com:8080", want: listen, terminations: byName,
		},
		"Itself": {
			reason: "Nor is a loopback address.", serving: "127.0.0.1:8080", want: listen, terminations: byName,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			services := Services(Input{
				Attachments: []v1alpha1.ServiceAttachment{attachment("web", "svc:web", map[int32]string{80: "web.example.com"})},
				Health:      map[probe.Target]probe.Status{tgt("web.example.com"): tc.status},
				Serving:     map[string]Handlers{"svc:web": {80: {Forward: tc.serving}}},
			})
			h := Handler{Forward: tc.want}
			if tc.terminations == nil {
				tc.terminations = map[string][]Termination{}
			} else {
				h.ProxyProtocol = headerInside
			}
			if diff := cmp.Diff(map[string]Handlers{"svc:web": {80: h}}, HandlersOf(services)); diff != "" {
				t.Errorf("\n%s\nHandlersOf(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.terminations, TerminationsOf(services), cmpopts.EquateComparable(netip.AddrPort{})); diff != "" {
				t.Errorf("\n%s\nTerminationsOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestServed(t *testing.T) {
	handlers := map[string]Handlers{"svc:web": {443: {}, 80: {}}, "svc:all": {}, "svc:none": {}}
	want := map[string][]string{"svc:web": {"tcp:80", "tcp:443"}, "svc:all": {string(v1alpha1.ServicePortAll)}, "svc:none": nil}
	if diff := cmp.Diff(want, Served(handlers, Forwards{"svc:all": {}, "svc:web": {}})); diff != "" {
		t.Errorf("A service that only the kernel forwards has all ports: -want, +got:\n%s", diff)
	}
}

func TestDeterminism(t *testing.T) {
	var as []v1alpha1.ServiceAttachment
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		as = append(as, attachment(n, "svc:"+n, map[int32]string{80: n + "1", 81: n + "2", 443: n + "3", 9: n + "4"}))
	}
	render := func() string {
		rand.Shuffle(len(as), func(i, j int) { as[i], as[j] = as[j], as[i] })
		services := Services(Input{Attachments: as, Advertised: []string{"svc:e", "svc:b", "svc:a"}})
		serve, err := ServeConfig(HandlersOf(services))
		if err != nil {
			t.Fatalf("ServeConfig(...): %v", err)
		}
		config, err := TailscaledConfig([]byte(`{"Version":"alpha0","Hostname":"h","Locked":false}`), Advertised(services))
		if err != nil {
			t.Fatalf("TailscaledConfig(...): %v", err)
		}
		return string(serve) + string(config)
	}
	want := render()
	for range 20 {
		if diff := cmp.Diff(want, render()); diff != "" {
			t.Fatalf("Equal input must give equal bytes: -first, +later:\n%s", diff)
		}
	}
}

func TestStatus(t *testing.T) {
	services := []Service{
		{Name: "svc:a", Advertise: true, Healthy: 1, Targets: []probe.Target{tgt("a")}},
		{Name: "svc:b", Advertise: true, Healthy: 2, Targets: []probe.Target{tgt("b"), tgt("c")}},
		{Name: "svc:c", Targets: []probe.Target{tgt("d")}, Unhealthy: []int32{80, 443}, Message: "No backend answers: d:8080 (timed out)"},
	}
	dead := []string{"tcp:80", "tcp:443"}
	served := []string{"tcp:80"}
	cases := map[string]struct {
		reason string
		tn     Tailnet
		want   []v1alpha1.HostedService
		agent  v1alpha1.MachineAgentStatus
	}{
		"Unknown": {
			reason: "A service whose acceptance is not known does not wait for it.",
			tn:     Tailnet{Running: true, Accepted: map[string]bool{"svc:c": true}, Version: "1.999.0-" + strings.Repeat("t", 100), Polled: true},
			agent:  v1alpha1.MachineAgentStatus{TailscaledVersion: "1.999.0-" + strings.Repeat("t", 56), Polled: true, AcceptanceUnknown: true},
			want: []v1alpha1.HostedService{
				{Name: "svc:a", Advertised: true, HealthyBackends: 1, TotalBackends: 1},
				{Name: "svc:b", Advertised: true, HealthyBackends: 2, TotalBackends: 2},
				{Name: "svc:c", Accepted: true, TotalBackends: 1, UnhealthyPorts: dead, Message: "No backend answers: d:8080 (timed out)"},
			},
		},
		"Running": {
			reason: "A service is accepted when control gave it to the machine, whether advertised or not.",
			tn:     Tailnet{Running: true, AcceptedKnown: true, Version: "1.102.5", Accepted: map[string]bool{"svc:a": true, "svc:c": true}, Served: map[string][]string{"svc:a": served}},
			agent:  v1alpha1.MachineAgentStatus{TailscaledVersion: "1.102.5"},
			want: []v1alpha1.HostedService{
				{Name: "svc:a", Advertised: true, Accepted: true, HealthyBackends: 1, TotalBackends: 1, Ports: served},
				{Name: "svc:b", Advertised: true, HealthyBackends: 2, TotalBackends: 2, Message: messageNotAccepted},
				{Name: "svc:c", Accepted: true, TotalBackends: 1, UnhealthyPorts: dead, Message: "No backend answers: d:8080 (timed out)"},
			},
		},
		"Away": {
			reason: "While tailscaled is not in the tailnet, the message of advertised services reports that.",
			want: []v1alpha1.HostedService{
				{Name: "svc:a", Advertised: true, HealthyBackends: 1, TotalBackends: 1, Message: messageNotInTailnet},
				{Name: "svc:b", Advertised: true, HealthyBackends: 2, TotalBackends: 2, Message: messageNotInTailnet},
				{Name: "svc:c", TotalBackends: 1, UnhealthyPorts: dead, Message: "No backend answers: d:8080 (timed out)"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := tc.agent.DeepCopy()
			want.PodIP, want.Services = "10.0.0.7", tc.want
			if diff := cmp.Diff(want, Status("10.0.0.7", services, tc.tn)); diff != "" {
				t.Errorf("\n%s\nStatus(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

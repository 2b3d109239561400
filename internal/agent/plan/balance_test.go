// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/balance"
	"github.com/tailscale-gateway/tailscale-gateway/internal/probe"
)

// balancedAttachment returns an attachment with one port, whose hosts share it.
func balancedAttachment(hosts ...string) v1alpha1.ServiceAttachment {
	a := attachment("web", "svc:web", map[int32]string{80: hosts[0]})
	for i, host := range hosts {
		a.Spec.Ports[0].Backends = append(a.Spec.Ports[0].Backends, v1alpha1.AttachmentShare{
			AttachmentBackend: v1alpha1.AttachmentBackend{Host: host, Port: 8080}, Weight: int32(i + 1),
		})
	}
	return a
}

func TestBalance(t *testing.T) {
	listen := netip.MustParseAddrPort("127.36.0.1:16464")
	two := balancedAttachment("web.default.svc", "next.default.svc")
	failover := balancedAttachment("10.96.0.1", "10.96.0.2")
	failover.Spec.Ports[0].Backends[0].FailbackDelay = ptr.To(metav1.Duration{Duration: time.Minute})
	failover.Spec.Ports[0].Backends[1].Priority = 1
	leastConnections := balancedAttachment("10.96.0.1", "10.96.0.2")
	leastConnections.Spec.Ports[0].Strategy = v1alpha1.AttachmentStrategyLeastConnections
	leastConnections.Spec.Ports[0].Protocol = v1alpha1.AttachmentProtocolHTTP
	own := balancedAttachment("10.96.0.1", "localhost", "rebinds.example.com")
	refusedOnly := balancedAttachment("localhost", "127.0.0.1")
	health := func(statuses map[string]probe.Status) map[probe.Target]probe.Status {
		out := map[probe.Target]probe.Status{}
		for host, st := range statuses {
			out[tgt(host)] = st
		}
		return out
	}
	ok, dead := probe.Status{Health: probe.Healthy}, probe.Status{Health: probe.Unhealthy, Reason: "connection refused"}
	end := func(b ...balance.Backend) []Termination {
		return []Termination{{Listen: listen, Balance: &balance.Config{Backends: b}}}
	}
	type want struct {
		Terminations       []Termination
		Targets, Healthy   int
		Unhealthy          []int32
		Advertise, Waiting bool
		Message            string
	}
	cases := map[string]struct {
		reason     string
		attachment v1alpha1.ServiceAttachment
		health     map[probe.Target]probe.Status
		withdrawn  bool
		want       want
	}{
		"Healthy": {
			reason:     "All backends of a port are probed, and the agent serves the port, even if each backend has one address.",
			attachment: two,
			health: health(map[string]probe.Status{
				"web.default.svc":  {Health: probe.Healthy, Address: netip.MustParseAddr("10.96.0.10")},
				"next.default.svc": {Health: probe.Healthy, Address: netip.MustParseAddr("10.96.0.11")},
			}),
			want: want{
				Terminations: end(
					balance.Backend{Address: "web.default.svc:8080", Weight: 1, Health: probe.Healthy},
					balance.Backend{Address: "next.default.svc:8080", Weight: 2, Health: probe.Healthy}),
				Targets: 2, Healthy: 2, Advertise: true,
			},
		},
		"One": {
			reason:     "A port with one healthy backend is served, and the message names the other.",
			attachment: failover,
			health:     health(map[string]probe.Status{"10.96.0.1": dead, "10.96.0.2": ok}),
			withdrawn:  true,
			want: want{
				Terminations: end(
					balance.Backend{Address: "10.96.0.1:8080", Weight: 1, FailbackDelay: time.Minute, Health: probe.Unhealthy},
					balance.Backend{Address: "10.96.0.2:8080", Weight: 2, Priority: 1, Health: probe.Healthy}),
				Targets: 2, Healthy: 1, Advertise: true,
				Message: "Other backends of the port receive all connections, because these do not answer: 10.96.0.1:8080 (connection refused)",
			},
		},
		"None": {
			reason:     "A port is dead once none of its backends answers.",
			attachment: failover,
			health:     health(map[string]probe.Status{"10.96.0.1": dead, "10.96.0.2": dead}),
			want: want{
				Terminations: end(
					balance.Backend{Address: "10.96.0.1:8080", Weight: 1, FailbackDelay: time.Minute, Health: probe.Unhealthy},
					balance.Backend{Address: "10.96.0.2:8080", Weight: 2, Priority: 1, Health: probe.Unhealthy}),
				Targets: 2, Unhealthy: []int32{80},
				Message: "No backend answers: 10.96.0.1:8080 (connection refused), 10.96.0.2:8080 (connection refused)",
			},
		},
		"Unknown": {
			reason:     "A backend that is not probed yet may answer.",
			attachment: failover,
			health:     health(map[string]probe.Status{"10.96.0.1": dead}),
			want: want{
				Terminations: end(
					balance.Backend{Address: "10.96.0.1:8080", Weight: 1, FailbackDelay: time.Minute, Health: probe.Unhealthy},
					balance.Backend{Address: "10.96.0.2:8080", Weight: 2, Priority: 1}),
				Targets: 2, Waiting: true, Message: messageProbing,
			},
		},
		"LeastRequests": {
			reason:     "The strategy counts requests if the port has the protocol HTTP.",
			attachment: leastConnections,
			health:     health(map[string]probe.Status{"10.96.0.1": ok, "10.96.0.2": ok}),
			want: want{
				Terminations: []Termination{{Listen: listen, HTTP: true, Balance: &balance.Config{LeastConnections: true, Backends: []balance.Backend{
					{Address: "10.96.0.1:8080", Weight: 1, Health: probe.Healthy},
					{Address: "10.96.0.2:8080", Weight: 2, Health: probe.Healthy},
				}}}},
				Targets: 2, Healthy: 2, Advertise: true,
			},
		},
		"OwnAddress": {
			reason:     "A backend that leads to the pod itself or to its node is never dialed.",
			attachment: own,
			health: health(map[string]probe.Status{
				"10.96.0.1": ok, "localhost": ok,
				"rebinds.example.com": {Health: probe.Unhealthy, Reason: "its address is refused: it is a link-local address"},
			}),
			want: want{
				Terminations: end(balance.Backend{Address: "10.96.0.1:8080", Weight: 1, Health: probe.Healthy}),
				Targets:      3, Healthy: 2, Advertise: true,
				Message: "Other backends of the port receive all connections, because these do not answer: rebinds.example.com:8080 (its address is refused: it is a link-local address)",
			},
		},
		"OwnAddresses": {
			reason:     "A port without another backend is not served.",
			attachment: refusedOnly,
			health: health(map[string]probe.Status{
				"localhost": {Health: probe.Unhealthy, Reason: "its address is refused: it is a loopback address"},
				"127.0.0.1": {Health: probe.Unhealthy, Reason: "its address is refused: it is a loopback address"},
			}),
			want: want{
				Targets: 2, Unhealthy: []int32{80},
				Message: "No backend answers: 127.0.0.1:8080 (its address is refused: it is a loopback address), localhost:8080 (its address is refused: it is a loopback address)",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			services := Services(Input{
				Attachments: []v1alpha1.ServiceAttachment{tc.attachment}, Health: tc.health,
				Withdrawn: map[string]bool{"svc:web": tc.withdrawn},
			})
			if len(services) != 1 {
				t.Fatalf("want one service, got %v", services)
			}
			s := services[0]
			got := want{
				Terminations: s.Terminations, Targets: len(s.Targets), Healthy: s.Healthy, Unhealthy: s.Unhealthy,
				Advertise: s.Advertise, Waiting: s.Undecided, Message: s.Message,
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Errorf("\n%s\nServices(...): -want, +got:\n%s", tc.reason, diff)
			}
			wantHandlers := Handlers{}
			if len(tc.want.Terminations) > 0 {
				wantHandlers[80] = Handler{Forward: listen.String(), ProxyProtocol: headerInside}
			}
			if diff := cmp.Diff(wantHandlers, s.Handlers); diff != "" {
				t.Errorf("\n%s\nhandlers: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBalancedIsNotForwarded verifies that the kernel forwards no port with several backends.
func TestBalancedIsNotForwarded(t *testing.T) {
	a := balancedAttachment("10.96.0.1", "10.96.0.2")
	a.Spec.Ports[0].Port = 8080
	if host, ok := forwardable(a.Spec); ok {
		t.Errorf("want no host to forward to, got %s", host)
	}
	a.Spec.Ports[0].Backends = nil
	if host, ok := forwardable(a.Spec); !ok || host != "10.96.0.1" {
		t.Errorf("want 10.96.0.1 to forward to with one backend, got %q", host)
	}
}

// TestTerminationEqual verifies that a listener stays if only its backends change, and that a restarted
// agent reads what it has written.
func TestTerminationEqual(t *testing.T) {
	base := Termination{Listen: netip.MustParseAddrPort("127.0.0.1:20000"), Balance: &balance.Config{Backends: []balance.Backend{{Address: "a:1", Weight: 1}}}}
	cases := map[string]struct {
		reason      string
		change      func(*Termination)
		equal, same bool
	}{
		"Health":   {reason: "Health changes nothing.", change: func(t *Termination) { t.Balance.Backends[0].Health = probe.Healthy }, equal: true, same: true},
		"Backends": {reason: "A listener can replace its backends.", change: func(t *Termination) { t.Balance.Backends[0].Weight = 2 }, same: true},
		"Single":   {reason: "A listener of one backend is another one.", change: func(t *Termination) { t.Balance, t.Backend = nil, "a:1" }},
		"HTTP":     {reason: "A listener for requests is another one.", change: func(t *Termination) { t.HTTP = true }},
		"HTTPS":    {reason: "So is one for requests over TLS.", change: func(t *Termination) { t.HTTPS = true }},
		"Name":     {reason: "A listener can replace the settings of a backend.", change: func(t *Termination) { t.Balance.Backends[0].TLS.ServerName = "b" }, same: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(base)
			if err != nil {
				t.Fatal(err)
			}
			var o Termination
			if err := json.Unmarshal(b, &o); err != nil {
				t.Fatal(err)
			}
			if !base.Equal(o) {
				t.Fatalf("want the same after a restart, got %+v", o)
			}
			tc.change(&o)
			if got := base.Equal(o); got != tc.equal {
				t.Errorf("%s\nEqual(...): want %t, got %t", tc.reason, tc.equal, got)
			}
			if got := base.SameListener(o); got != tc.same {
				t.Errorf("%s\nSameListener(...): want %t, got %t", tc.reason, tc.same, got)
			}
		})
	}
}

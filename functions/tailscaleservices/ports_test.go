// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

func TestAssignPorts(t *testing.T) {
	web := gatewayv1alpha1.Backend{Name: "web", Port: 8080}
	tls := gatewayv1alpha1.Backend{Name: "tls", Port: 8443, VIPPort: ptr.To[int32](443)}
	type want struct {
		ports  map[int32]string
		reason xpv2.ConditionReason
		err    string
	}
	cases := map[string]struct {
		reason   string
		ports    []gatewayv1alpha1.ServicePort
		backends []gatewayv1alpha1.Backend
		strategy gatewayv1alpha1.Strategy
		want     want
	}{
		"One": {
			reason:   "A backend without vipPort answers all ports",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80", "tcp:8080"},
			backends: []gatewayv1alpha1.Backend{web},
			want:     want{ports: map[int32]string{80: "web", 8080: "web"}},
		},
		"Named": {
			reason:   "A backend with vipPort answers that port, the other the rest",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:443", "tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, tls},
			want:     want{ports: map[int32]string{80: "web", 443: "tls"}},
		},
		"NothingLeft": {
			reason:   "A backend that is left without a port harms nobody",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:443"},
			backends: []gatewayv1alpha1.Backend{web, tls},
			want:     want{ports: map[int32]string{443: "tls"}},
		},
		"None": {
			reason:   "A port without a backend cannot be served",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:443", "tcp:80"},
			backends: []gatewayv1alpha1.Backend{tls},
			want:     want{reason: meta.ReasonInvalidBackends, err: "no backend answers port tcp:80; add one to spec.backends with vipPort 80"},
		},
		"Several": {
			reason:   "A port goes to one backend",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, web},
			want: want{
				reason: meta.ReasonUnsupported,
				err:    "spec.backends[0], spec.backends[1] all answer port tcp:80; a port takes one backend, so give each a vipPort of its own, or let a Gateway balance them and name its Service as the one backend",
			},
		},
		"Unknown": {
			reason:   "A port must be one of the service",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web, tls},
			want:     want{reason: meta.ReasonInvalidBackends, err: "spec.backends[1].vipPort 443 is not in spec.vipService.ports; add tcp:443 there"},
		},
		"RoundRobin": {
			reason:   "What Kubernetes does anyway can be said",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web},
			strategy: gatewayv1alpha1.StrategyRoundRobin,
			want:     want{ports: map[int32]string{80: "web"}},
		},
		"Strategy": {
			reason:   "A proxy knows no other strategy, however many backends there are",
			ports:    []gatewayv1alpha1.ServicePort{"tcp:80"},
			backends: []gatewayv1alpha1.Backend{web},
			strategy: gatewayv1alpha1.StrategyFailover,
			want: want{
				reason: meta.ReasonUnsupported,
				err:    "proxies do not know spec.loadBalancing.strategy failover; set round-robin, or let a Gateway balance them and name its Service as the one backend",
			},
		},
		"UDP": {
			reason:   "A port that the schema would refuse is told by field",
			ports:    []gatewayv1alpha1.ServicePort{"udp:53"},
			backends: []gatewayv1alpha1.Backend{web},
			want:     want{reason: meta.ReasonInvalidBackends, err: `spec.vipService.ports[0] "udp:53" is not tcp:PORT with PORT from 1 to 65535`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := gatewayv1alpha1.TailscaleServicesSpec{
				VIPService: gatewayv1alpha1.VIPServiceTemplate{Ports: tc.ports},
				Backends:   tc.backends,
			}
			if tc.strategy != "" {
				spec.LoadBalancing = &gatewayv1alpha1.LoadBalancing{Strategy: tc.strategy}
			}
			assigned, err := assignPorts(spec)
			var got want
			if err != nil {
				got.reason, got.err = err.reason, err.Error()
			}
			for _, a := range assigned {
				if got.ports == nil {
					got.ports = map[int32]string{}
				}
				got.ports[a.port] = a.backend.Name
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHealthCheck(t *testing.T) {
	seconds := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
	cases := map[string]struct {
		reason string
		lb     *gatewayv1alpha1.LoadBalancing
		want   tailnetv1alpha1.AttachmentHealthCheck
	}{
		"Absent": {
			reason: "A connection is tried, often enough to withdraw within 15 s",
			want:   tailnetv1alpha1.AttachmentHealthCheck{Interval: seconds(5), Timeout: seconds(2), HealthyThreshold: 1, UnhealthyThreshold: 2},
		},
		"Connection": {
			reason: "Without enabled there is no path, but figures hold",
			lb:     &gatewayv1alpha1.LoadBalancing{HealthCheck: &gatewayv1alpha1.HealthCheck{Path: "/x", Interval: seconds(1)}},
			want:   tailnetv1alpha1.AttachmentHealthCheck{Interval: seconds(1), Timeout: seconds(3), HealthyThreshold: 2, UnhealthyThreshold: 3},
		},
		"Disabled": {
			reason: "Backends are not to be asked",
			lb:     &gatewayv1alpha1.LoadBalancing{HealthCheck: &gatewayv1alpha1.HealthCheck{Enabled: ptr.To(false), Path: "/x"}},
			want: tailnetv1alpha1.AttachmentHealthCheck{
				ResolveOnly: true, Interval: seconds(10), Timeout: seconds(3), HealthyThreshold: 2, UnhealthyThreshold: 3,
			},
		},
		"Enabled": {
			reason: "The settled defaults hold for what is not said",
			lb:     &gatewayv1alpha1.LoadBalancing{HealthCheck: &gatewayv1alpha1.HealthCheck{Enabled: ptr.To(true)}},
			want: tailnetv1alpha1.AttachmentHealthCheck{
				Path: "/health", Interval: seconds(10), Timeout: seconds(3), HealthyThreshold: 2, UnhealthyThreshold: 3,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, healthCheck(tc.lb)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
)

func TestAnswering(t *testing.T) {
	named, other := gatewayv1alpha1.Backend{VIPPort: ptr.To[int32](443)}, gatewayv1alpha1.Backend{}
	cases := map[string]struct {
		reason   string
		backends []gatewayv1alpha1.Backend
		port     int32
		want     []int
	}{
		"Named":   {reason: "A backend that names the port takes it from those that name none.", backends: []gatewayv1alpha1.Backend{other, named}, port: 443, want: []int{1}},
		"Unnamed": {reason: "Backends that name no port answer the others, in order.", backends: []gatewayv1alpha1.Backend{other, named, other}, port: 80, want: []int{0, 2}},
		"None":    {reason: "A backend answers no other port than the one that it names.", backends: []gatewayv1alpha1.Backend{named}, port: 80},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Answering(tc.backends, tc.port)); diff != "" {
				t.Errorf("%s\nAnswering(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPriorityAndWeight(t *testing.T) {
	failover := &gatewayv1alpha1.LoadBalancing{
		Strategy: gatewayv1alpha1.StrategyFailover,
		Failover: &gatewayv1alpha1.Failover{Primary: "a", Secondary: []gatewayv1alpha1.BackendName{"b"}},
	}
	weighted := &gatewayv1alpha1.LoadBalancing{Strategy: gatewayv1alpha1.StrategyWeighted, Weights: map[string]gatewayv1alpha1.Weight{"a": 7}}
	cases := map[string]struct {
		reason   string
		lb       *gatewayv1alpha1.LoadBalancing
		backend  gatewayv1alpha1.Backend
		priority int32
		weight   gatewayv1alpha1.Weight
	}{
		"Default":   {reason: "A backend has priority 0 and weight 1.", backend: gatewayv1alpha1.Backend{Name: "a"}, weight: 1},
		"Own":       {reason: "A backend may have its own.", backend: gatewayv1alpha1.Backend{Name: "a", Priority: ptr.To[int32](3), Weight: ptr.To[gatewayv1alpha1.Weight](5)}, priority: 3, weight: 5},
		"Secondary": {reason: "The strategy failover has an order.", lb: failover, backend: gatewayv1alpha1.Backend{Name: "b", Priority: ptr.To[int32](9)}, priority: 1, weight: 1},
		"Last":      {reason: "A backend that the order does not name comes last.", lb: failover, backend: gatewayv1alpha1.Backend{Name: "c"}, priority: 2, weight: 1},
		"Weighted":  {reason: "The strategy weighted has weights by name.", lb: weighted, backend: gatewayv1alpha1.Backend{Name: "a", Weight: ptr.To[gatewayv1alpha1.Weight](5)}, weight: 7},
		"Unlisted":  {reason: "A backend that the weights do not name keeps its own.", lb: weighted, backend: gatewayv1alpha1.Backend{Name: "b", Weight: ptr.To[gatewayv1alpha1.Weight](5)}, weight: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Priority(tc.lb, tc.backend); got != tc.priority {
				t.Errorf("%s\nPriority(...): want %d, got %d", tc.reason, tc.priority, got)
			}
			if got := Weight(tc.lb, tc.backend); got != tc.weight {
				t.Errorf("%s\nWeight(...): want %d, got %d", tc.reason, tc.weight, got)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	cases := map[string]struct {
		reason             string
		tls                *gatewayv1alpha1.ServiceTLS
		https              bool
		port               int32
		speaks, terminates bool
	}{
		"None":        {reason: "Without spec.tls no port speaks TLS.", port: 443},
		"HTTPS":       {reason: "Port 443 does by default.", tls: &gatewayv1alpha1.ServiceTLS{}, https: true, port: 443, speaks: true, terminates: true},
		"Other":       {reason: "Beside port 443 no other does by default.", tls: &gatewayv1alpha1.ServiceTLS{}, https: true, port: 80},
		"All":         {reason: "Without port 443 all do.", tls: &gatewayv1alpha1.ServiceTLS{}, port: 80, speaks: true, terminates: true},
		"Named":       {reason: "A port may be named.", tls: &gatewayv1alpha1.ServiceTLS{Ports: []int32{8443}}, https: true, port: 8443, speaks: true, terminates: true},
		"NotNamed":    {reason: "If ports are named, port 443 is none of them.", tls: &gatewayv1alpha1.ServiceTLS{Ports: []int32{8443}}, https: true, port: 443},
		"Passthrough": {reason: "Proxies may leave TLS to the backend.", tls: &gatewayv1alpha1.ServiceTLS{Mode: gatewayv1alpha1.TLSModePassthrough}, https: true, port: 443, speaks: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SpeaksTLS(tc.tls, tc.https, tc.port); got != tc.speaks {
				t.Errorf("%s\nSpeaksTLS(...): want %t, got %t", tc.reason, tc.speaks, got)
			}
			if got := TerminatesTLS(tc.tls, tc.https, tc.port); got != tc.terminates {
				t.Errorf("%s\nTerminatesTLS(...): want %t, got %t", tc.reason, tc.terminates, got)
			}
		})
	}
}

func TestHealthCheckOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		check  *gatewayv1alpha1.HealthCheck
		want   HealthCheck
	}{
		"Nil":        {reason: "Without a health check, probes open connections.", want: HealthCheck{Interval: 5 * time.Second, Timeout: 2 * time.Second, HealthyThreshold: 1, UnhealthyThreshold: 2}},
		"Connection": {reason: "A check that is not enabled has the schema's defaults and no path.", check: &gatewayv1alpha1.HealthCheck{Path: "/x", Interval: metav1.Duration{Duration: time.Second}}, want: HealthCheck{Interval: time.Second, Timeout: 3 * time.Second, HealthyThreshold: 2, UnhealthyThreshold: 3}},
		"Enabled":    {reason: "An enabled check has a path.", check: &gatewayv1alpha1.HealthCheck{Enabled: ptr.To(true)}, want: HealthCheck{Interval: 10 * time.Second, Timeout: 3 * time.Second, HealthyThreshold: 2, UnhealthyThreshold: 3, Path: "/health"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, HealthCheckOf(tc.check)); diff != "" {
				t.Errorf("%s\nHealthCheckOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

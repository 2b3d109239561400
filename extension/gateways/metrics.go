// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

var generatedInfo = prometheus.NewDesc("tailscale_gateway_extension_generated_routes",
	"Routes to generate for TailscaleGateways, by state. Only the replica that writes them reports them.", []string{"state"}, nil)

// metrics is a collector of the numbers of generated routes.
type metrics struct {
	// mu guards counts.
	mu     sync.Mutex
	counts map[types.NamespacedName]map[tailnetv1alpha1.GeneratedRouteState]int
}

func newMetrics() *metrics {
	return &metrics{counts: map[types.NamespacedName]map[tailnetv1alpha1.GeneratedRouteState]int{}}
}

// set counts the routes of a TailscaleGateway.
func (m *metrics) set(n types.NamespacedName, routes []tailnetv1alpha1.ReportedGeneratedRoute) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.counts, n)
	if len(routes) == 0 {
		return
	}
	m.counts[n] = map[tailnetv1alpha1.GeneratedRouteState]int{}
	for _, r := range routes {
		m.counts[n][r.State]++
	}
}

// reset removes all counts, because another replica reports from now on.
func (m *metrics) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.counts)
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) { ch <- generatedInfo }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := map[tailnetv1alpha1.GeneratedRouteState]int{
		tailnetv1alpha1.GeneratedRouteAccepted: 0, tailnetv1alpha1.GeneratedRoutePending: 0,
		tailnetv1alpha1.GeneratedRouteRefused: 0, tailnetv1alpha1.GeneratedRouteConflict: 0,
	}
	for _, routes := range m.counts {
		for s, n := range routes {
			sum[s] += n
		}
	}
	for s, n := range sum {
		ch <- prometheus.MustNewConstMetric(generatedInfo, prometheus.GaugeValue, float64(n), string(s))
	}
}

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
	"Routes that TailscaleGateways ask to be generated, by state. The replica that writes them tells.", []string{"state"}, nil)

// metrics of generated routes. They are a collector, to be registered.
type metrics struct {
	// mu guards what follows.
	mu sync.Mutex
	by map[types.NamespacedName]map[tailnetv1alpha1.GeneratedRouteState]int
}

func newMetrics() *metrics {
	return &metrics{by: map[types.NamespacedName]map[tailnetv1alpha1.GeneratedRouteState]int{}}
}

// Metrics of the Controller.
func (c *Controller) Metrics() prometheus.Collector { return c.metrics }

// set the routes of a TailscaleGateway.
func (m *metrics) set(n types.NamespacedName, of []tailnetv1alpha1.ReportedGeneratedRoute) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, n)
	if len(of) == 0 {
		return
	}
	m.by[n] = map[tailnetv1alpha1.GeneratedRouteState]int{}
	for _, r := range of {
		m.by[n][r.State]++
	}
}

// reset all: another replica tells from now on.
func (m *metrics) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.by)
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
	for _, of := range m.by {
		for s, n := range of {
			sum[s] += n
		}
	}
	for s, n := range sum {
		ch <- prometheus.MustNewConstMetric(generatedInfo, prometheus.GaugeValue, float64(n), string(s))
	}
}

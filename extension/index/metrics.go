// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

// Metrics are the metrics of a Store. They are a prometheus.Collector.
type Metrics struct {
	updates  prometheus.Histogram
	shapes   prometheus.Counter
	unusable prometheus.Counter
	revision prometheus.Gauge
}

func newMetrics() *Metrics {
	return &Metrics{
		updates: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tailscale_gateway_extension_index_update_duration_seconds",
			Help:    "Time that a new snapshot took, from the first changed object in it.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 12),
		}),
		shapes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tailscale_gateway_extension_index_shape_changes_total",
			Help: "Snapshots in which more than endpoints changed, so that Envoy Gateway must translate.",
		}),
		unusable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tailscale_gateway_extension_index_unusable_total",
			Help: "Changed objects that could not be read. The log says which.",
		}),
		revision: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tailscale_gateway_extension_index_revision",
			Help: "Revision of what clusters and routes are made of, of this process alone.",
		}),
	}
}

// made records a new Snapshot. If shapes is true, more than endpoints changed.
func (m *Metrics) made(s *ir.Snapshot, shapes bool, took time.Duration) {
	m.updates.Observe(took.Seconds())
	m.revision.Set(float64(s.Revision))
	if shapes {
		m.shapes.Inc()
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.updates, m.shapes, m.unusable, m.revision}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(ch)
	}
}

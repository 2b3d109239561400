// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics is the Prometheus collector of a server.
type Metrics struct {
	streams       prometheus.Gauge
	subscriptions prometheus.Gauge
	lists         prometheus.Gauge
	delivered     prometheus.Counter
	refused       prometheus.Counter
	limited       prometheus.Counter
	unknown       prometheus.Counter
	refreshed     prometheus.Histogram
}

func newMetrics() *Metrics {
	return &Metrics{
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tailscale_gateway_eds_streams",
			Help: "Streams of Envoys that subscribe to endpoints.",
		}),
		subscriptions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tailscale_gateway_eds_subscriptions",
			Help: "Subscriptions to endpoint lists, of all streams.",
		}),
		lists: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tailscale_gateway_eds_lists",
			Help: "Endpoint lists with at least one subscription.",
		}),
		delivered: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tailscale_gateway_eds_sent_total",
			Help: "Endpoint lists sent to Envoys.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tailscale_gateway_eds_refused_total",
			Help: "Responses that Envoys refused. The log has the reason.",
		}),
		limited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tailscale_gateway_eds_limited_total",
			Help: "Streams and names that the server refused because an Envoy, or all together, reached a limit.",
		}),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tailscale_gateway_eds_unknown_total",
			Help: "Names that stayed unknown. Envoys without endpoints for them get an empty list.",
		}),
		refreshed: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "tailscale_gateway_eds_refresh_duration_seconds",
			Help:    "Time from a new snapshot until the streams have all changes.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.streams, m.subscriptions, m.lists, m.delivered, m.refused, m.limited, m.unknown, m.refreshed}
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

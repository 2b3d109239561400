// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Reasons why a connection was refused, as a label.
const (
	reasonBusy    = "busy"
	reasonNoHost  = "no-host"
	reasonOutside = "outside-tailnet"
	reasonDial    = "dial"
)

const labelTarget = "target"

// Metrics are the metrics of a Server. There are at most as many targets as ports.
type Metrics struct {
	connections *prometheus.CounterVec
	current     *prometheus.GaugeVec
	refused     *prometheus.CounterVec
	bytes       *prometheus.CounterVec
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	return &Metrics{
		connections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_egress_connections_total",
			Help: "Connections that were carried into the tailnet, by target.",
		}, []string{labelTarget}),
		current: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tailscale_gateway_egress_open_connections",
			Help: "Connections that are open, by target.",
		}, []string{labelTarget}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_egress_refused_connections_total",
			Help: "Connections that were reset, by target and reason: busy, no-host, outside-tailnet or dial.",
		}, []string{labelTarget, "reason"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_egress_bytes_total",
			Help: "Bytes of connections that have ended, by target and direction: out to the tailnet, or in from it.",
		}, []string{labelTarget, "direction"}),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(c chan<- *prometheus.Desc) {
	m.connections.Describe(c)
	m.current.Describe(c)
	m.refused.Describe(c)
	m.bytes.Describe(c)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(c chan<- prometheus.Metric) {
	m.connections.Collect(c)
	m.current.Collect(c)
	m.refused.Collect(c)
	m.bytes.Collect(c)
}

// A carried connection counts in the series that its target had when the connection was opened.
// If the target was forgotten in the meantime, that series is no longer collected. A target
// that returns gets a new series.
type carried struct {
	current       prometheus.Gauge
	out, received prometheus.Counter
}

func (m *Metrics) open(target string) carried {
	m.connections.WithLabelValues(target).Inc()
	c := carried{
		current:  m.current.WithLabelValues(target),
		out:      m.bytes.WithLabelValues(target, "out"),
		received: m.bytes.WithLabelValues(target, "in"),
	}
	c.current.Inc()
	return c
}

func (c carried) closed(up, down int64) {
	c.current.Dec()
	c.out.Add(float64(up))
	c.received.Add(float64(down))
}

func (m *Metrics) refuse(target, reason string) {
	m.refused.WithLabelValues(target, reason).Inc()
}

// forget drops the series of a target that no port leads to any more.
func (m *Metrics) forget(target string) {
	l := prometheus.Labels{labelTarget: target}
	m.connections.DeletePartialMatch(l)
	m.current.DeletePartialMatch(l)
	m.refused.DeletePartialMatch(l)
	m.bytes.DeletePartialMatch(l)
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	endpointsInfo = prometheus.NewDesc("tailscale_gateway_health_endpoints",
		"Probed endpoints, by status.", []string{"status"}, nil)
	scoresInfo = prometheus.NewDesc("tailscale_gateway_health_scores",
		"Scores of the probed endpoints, from 0 to 100. Endpoints below 70 are used last.", nil, nil)
	lateInfo = prometheus.NewDesc("tailscale_gateway_health_probe_lag_seconds",
		"Delay of the most overdue probe.", nil, nil)
)

// scoreBuckets returns the upper bounds of scores.
func scoreBuckets() []float64 { return []float64{0, 25, 50, ScoreThreshold - 1, 90, best} }

// Metrics is the Prometheus collector of a Prober.
type Metrics struct {
	prober      *Prober
	probes      *prometheus.CounterVec
	transitions *prometheus.CounterVec
}

func newMetrics(p *Prober) *Metrics {
	return &Metrics{
		prober: p,
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_health_probes_total",
			Help: "Probes of endpoints, by their result.",
		}, []string{"result"}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_health_transitions_total",
			Help: "Changes of endpoints' status, by the new status.",
		}, []string{"status"}),
	}
}

func (m *Metrics) probed(r Result) {
	switch {
	case r.OK:
		m.probes.WithLabelValues("success").Inc()
	case r.Answered:
		m.probes.WithLabelValues("error").Inc()
	default:
		m.probes.WithLabelValues("unreachable").Inc()
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- endpointsInfo
	ch <- scoresInfo
	ch <- lateInfo
	m.probes.Describe(ch)
	m.transitions.Describe(ch)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.probes.Collect(ch)
	m.transitions.Collect(ch)

	byStatus := map[Status]int{Unknown: 0, Healthy: 0, Unhealthy: 0}
	buckets := map[float64]uint64{}
	bounds := scoreBuckets()
	sum, count := 0.0, uint64(0)
	late := m.prober.each(func(e *endpoint) {
		byStatus[e.Status]++
		sum += float64(e.Score)
		count++
		for _, b := range bounds {
			if float64(e.Score) <= b {
				buckets[b]++
			}
		}
	})
	for s, n := range byStatus {
		ch <- prometheus.MustNewConstMetric(endpointsInfo, prometheus.GaugeValue, float64(n), string(s))
	}
	ch <- prometheus.MustNewConstHistogram(scoresInfo, count, sum, buckets)
	ch <- prometheus.MustNewConstMetric(lateInfo, prometheus.GaugeValue, late.Seconds())
}

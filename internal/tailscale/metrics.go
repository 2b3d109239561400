// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts this process's requests to Tailscale's API. The number of label values is limited:
// resources are kinds of paths, never names.
type Metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	waits     prometheus.Counter
	listCalls *prometheus.CounterVec
	errors    *prometheus.CounterVec
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	return &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_api_requests_total",
			Help: "Requests to Tailscale's API by method, kind of resource and status code. Code 0 means no answer.",
		}, []string{"method", "resource", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tailscale_gateway_api_request_duration_seconds",
			Help:    "Time until Tailscale's API answered one request.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
		}, []string{"method", "resource"}),
		waits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tailscale_gateway_api_wait_seconds_total",
			Help: "Time that requests waited for the rate limit or a Retry-After.",
		}),
		listCalls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_api_list_calls_total",
			Help: "List calls that filled a shared list, by list.",
		}, []string{"list"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_api_errors_total",
			Help: "Calls to Tailscale's API that failed after all their tries, by kind of resource and class of the error.",
		}, []string{"resource", "class"}),
	}
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

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.duration, m.waits, m.listCalls, m.errors}
}

func (m *Metrics) observe(method, resource, code string, took time.Duration) {
	m.requests.WithLabelValues(method, resource, code).Inc()
	m.duration.WithLabelValues(method, resource).Observe(took.Seconds())
}

func (m *Metrics) failed(path string, c Class) {
	m.errors.WithLabelValues(resourceOf(path), string(c)).Inc()
}

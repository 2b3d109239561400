// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/issue"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/plan"
)

// Files that the agent writes, as label values.
const (
	fileConfig = "tailscaled"
	fileServe  = "serve"
	fileEgress = "egress"
)

// States of certificates that Tailscale provides, as label values.
const (
	stateUsable  = "usable"
	stateWaiting = "waiting"
	stateLimited = "limited"
	stateFailed  = "failed"
	stateNoSpace = "no-space"
)

// Metrics are the metrics of an agent.
type Metrics struct {
	registry *prometheus.Registry
	probes   *prometheus.CounterVec
	writes   *prometheus.CounterVec
	reports  *prometheus.CounterVec
	hosted   *prometheus.GaugeVec
	backends *prometheus.GaugeVec
	resolves *prometheus.CounterVec
	attempts *prometheus.CounterVec
	issued   *prometheus.GaugeVec
	expiry   prometheus.Gauge
	space    prometheus.Gauge
	egress   *egress.Metrics
}

// NewMetrics returns metrics in a separate registry, with those of the Go runtime and the
// process.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_agent_probes_total",
			Help: "Probes of backends, by result.",
		}, []string{"result"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_agent_writes_total",
			Help: "Changes of containerboot's files, by file.",
		}, []string{"file"}),
		reports: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_agent_reports_total",
			Help: "Attempts to bring the Machine's status up to date, by result.",
		}, []string{"result"}),
		hosted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tailscale_gateway_agent_services",
			Help: "Services that this machine is wanted to host, advertises, was accepted for, is primary for, and that have no primary host.",
		}, []string{"state"}),
		backends: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tailscale_gateway_agent_backends",
			Help: "Backends of all services, by whether they are healthy.",
		}, []string{"state"}),
		resolves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_agent_dns_answers_total",
			Help: "Answers to questions of DNS from the tailnet, by response code.",
		}, []string{"rcode"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tailscale_gateway_agent_certificate_attempts_total",
			Help: "Attempts to get or renew certificates that Tailscale provides, by result: success, limited (by a limit of the certificate authority) or failure.",
		}, []string{"result"}),
		issued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tailscale_gateway_agent_certificates",
			Help: "Certificates that Tailscale provides for the services of the group, by state: usable, waiting, limited, failed or no-space (in the state Secret). Only the first machine of a group counts them.",
		}, []string{"state"}),
		expiry: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tailscale_gateway_agent_certificate_expiry_timestamp_seconds",
			Help: "Unix time at which the first of the certificates in use expires. Zero without any.",
		}),
		space: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tailscale_gateway_agent_state_secret_bytes",
			Help: "Size of the data of the machine's state Secret, of 1048576 bytes at most. Certificates that Tailscale provides are in the Secret of the first machine of a group.",
		}),
		egress: egress.NewMetrics(),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.probes, m.writes, m.reports, m.hosted, m.backends, m.resolves, m.attempts, m.issued, m.expiry, m.space, m.egress,
	)
	return m
}

// Collector returns a collector of all metrics, for listing them.
func (m *Metrics) Collector() prometheus.Collector { return m.registry }

func (m *Metrics) probed(ok bool) { m.probes.WithLabelValues(result(ok)).Inc() }

func (m *Metrics) reported(err error) { m.reports.WithLabelValues(result(err == nil)).Inc() }

func (m *Metrics) resolved(rcode string) { m.resolves.WithLabelValues(rcode).Inc() }

func (m *Metrics) wrote(file string) { m.writes.WithLabelValues(file).Inc() }

func (m *Metrics) attempted(r issue.Result) { m.attempts.WithLabelValues(string(r)).Inc() }

func (m *Metrics) certificates(states map[string]int, expiry time.Time, bytes int) {
	for _, s := range []string{stateUsable, stateWaiting, stateLimited, stateFailed, stateNoSpace} {
		m.issued.WithLabelValues(s).Set(float64(states[s]))
	}
	m.expiry.Set(0)
	if !expiry.IsZero() {
		m.expiry.Set(float64(expiry.Unix()))
	}
	m.space.Set(float64(bytes))
}

func (m *Metrics) services(services []plan.Service, accepted map[string]bool, routed map[string]v1alpha1.Routing, primary int) {
	var advertised, hosted, unrouted, healthy, total int
	for _, s := range services {
		healthy += s.Healthy
		total += len(s.Targets)
		if s.Advertise {
			advertised++
		}
		if accepted[s.Name] {
			hosted++
		}
		if routed[s.Name] == v1alpha1.RoutingFalse {
			unrouted++
		}
	}
	m.hosted.WithLabelValues("wanted").Set(float64(len(services)))
	m.hosted.WithLabelValues("advertised").Set(float64(advertised))
	m.hosted.WithLabelValues("accepted").Set(float64(hosted))
	m.hosted.WithLabelValues("primary").Set(float64(primary))
	m.hosted.WithLabelValues("unrouted").Set(float64(unrouted))
	m.backends.WithLabelValues("healthy").Set(float64(healthy))
	m.backends.WithLabelValues("unhealthy").Set(float64(total - healthy))
}

func result(ok bool) string {
	if ok {
		return "success"
	}
	return "failure"
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// outcomeValues explains the label outcome. hooks.Summary makes its values.
const outcomeValues = "Outcomes are the clusters cluster-shared, cluster-dedicated, cluster-removed and cluster-failover (Services that fail over to other clusters); " +
	"the rules rule-translated, rule-split (over several clusters) and rule-skipped-REASON (as Envoy Gateway made them); " +
	"the routes route-inserted (by policies) and route-denied (policies insert too many); " +
	"and answer-stale, answers that Envoy Gateway has to ask for again."

var (
	buildInfo = prometheus.NewDesc("tailscale_gateway_extension_build_info",
		"Always 1. The labels identify the build.", []string{"version", "go_version"}, nil)
	readyInfo = prometheus.NewDesc("tailscale_gateway_extension_ready",
		"Whether the extension has all objects and serves.", nil, nil)
	degradedInfo = prometheus.NewDesc("tailscale_gateway_extension_degraded",
		"Number of degraded parts of a serving extension. /ready lists them.", nil, nil)
	silenceInfo = prometheus.NewDesc("tailscale_gateway_extension_source_silence_seconds",
		"Time for which the source of objects has been unreachable.", nil, nil)
	resourcesInfo = prometheus.NewDesc("tailscale_gateway_extension_resources",
		"Known objects, by kind.", []string{"kind"}, nil)
	translatedInfo = prometheus.NewDesc("tailscale_gateway_extension_last_translation_timestamp_seconds",
		"Time of the last translation of a Gateway by Envoy Gateway.", []string{"gateway"}, nil)
	outcomeInfo = prometheus.NewDesc("tailscale_gateway_extension_rules",
		"Result of a Gateway's last translation. "+outcomeValues, []string{"gateway", "outcome"}, nil)
	expiryInfo = prometheus.NewDesc("tailscale_gateway_extension_certificate_expiry_timestamp_seconds",
		"Time at which a server's certificate expires.", []string{"server"}, nil)
)

// standard returns the collectors of every process.
func standard() []prometheus.Collector {
	return []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
}

// A stateCollector makes metrics of an Observer's state when they are scraped.
type stateCollector struct{ o *Observer }

// Describe implements prometheus.Collector.
func (c stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{buildInfo, readyInfo, degradedInfo, silenceInfo, resourcesInfo, translatedInfo, outcomeInfo, expiryInfo} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(buildInfo, 1, c.o.opts.Version, runtime.Version())
	ready := 0.0
	if c.o.unready() == "" {
		ready = 1
	}
	gauge(readyInfo, ready)
	gauge(degradedInfo, float64(len(c.o.degraded())))
	if c.o.opts.Silence != nil {
		gauge(silenceInfo, c.o.opts.Silence().Seconds())
	}
	if c.o.opts.Resources != nil {
		for kind, n := range c.o.opts.Resources() {
			gauge(resourcesInfo, float64(n), kind)
		}
	}
	for server, expiry := range c.o.opts.Expiry {
		// The server reports a certificate that cannot be read.
		if at, err := expiry(); err == nil {
			gauge(expiryInfo, float64(at.Unix()), server)
		}
	}
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	for gateway, t := range c.o.gateways {
		gauge(translatedInfo, float64(t.at.UnixMilli())/1000, gateway)
		for outcome, n := range t.outcomes {
			gauge(outcomeInfo, float64(n), gateway, outcome)
		}
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"

	"github.com/tailscale-gateway/tailscale-gateway/extension/eds"
	"github.com/tailscale-gateway/tailscale-gateway/extension/gateways"
	"github.com/tailscale-gateway/tailscale-gateway/extension/health"
	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/observe"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent"
	_ "github.com/tailscale-gateway/tailscale-gateway/internal/provider" // Its libraries register their metrics.
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// Packages whose metrics the page lists one by one.
var (
	ours = []string{
		"github.com/tailscale-gateway/tailscale-gateway/cmd/...",
		"github.com/tailscale-gateway/tailscale-gateway/extension/...",
		"github.com/tailscale-gateway/tailscale-gateway/functions/...",
		"github.com/tailscale-gateway/tailscale-gateway/internal/...",
	}
	crossplanes = []string{
		"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed",
		"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics",
	}
)

// prefix of the names of all metrics of the project.
const prefix = "tailscale_gateway_"

// listed are prefixes of metrics that the page lists one by one.
var listed = []string{prefix, "crossplane_"}

// libraries are the metrics of libraries, which the page lists by prefix, with what they measure.
var libraries = map[string]string{
	"certwatcher_":        "reads of the metrics server's certificate, which is not configured",
	"controller_runtime_": "reconciles of each controller: number, errors, duration, workers",
	"go_":                 "the Go runtime: memory, garbage collection, goroutines",
	"grpc_server_":        "calls of the function, by method and code",
	"leader_election_":    "whether this replica is the leader",
	"process_":            "the process: CPU time, memory, file descriptors, start time",
	"rest_client_":        "requests to the API server, by code and method",
	"workqueue_":          "queues of each controller: length, waiting time, retries",
}

// A process has metrics.
type process struct {
	name, served string

	// collectors are what the process registers.
	collectors []prometheus.Collector

	// server are prefixes of metrics that a server registers when it starts.
	server []string
}

// processes returns the processes of the project. Their collectors are those that
// internal/provider, internal/agent and the extension's main package register.
func processes() []process {
	port := "at `--metrics-address`, by default `:8080`. Crossplane names this port of the pod `metrics`."
	return []process{
		{
			name:   "Provider",
			served: "The provider serves `/metrics` " + port + " `--metrics-address=0` disables it.",
			collectors: []prometheus.Collector{
				tailscale.NewMetrics(), tailscale.NewPool(tailscale.Options{}),
				managed.NewMRMetricRecorder(), statemetrics.NewMRStateMetrics(),
				registered{metrics.Registry},
			},
		},
		{
			name:   "Function",
			served: "The function serves `/metrics` " + port + " It has only metrics of libraries.",
			// The default registry of Prometheus has both.
			collectors: standard(),
			server:     []string{"grpc_server_"},
		},
		{
			name:       "Agent",
			served:     "The agent of a proxy pod serves `/metrics` at the pod's port `agent`. The port `tailscale` serves those of tailscaled, which [Tailscale documents](https://tailscale.com/kb/1482/client-metrics).",
			collectors: []prometheus.Collector{agent.NewMetrics().Collector()},
		},
		{
			name:   "Extension",
			served: "The extension serves `/metrics` at `--observe-address`, by default `:8080`: the pod's port `metrics`.",
			collectors: []prometheus.Collector{
				observe.NewObserver(observe.Options{}).Metrics(),
				eds.NewServer(nil, eds.Options{}).Metrics(),
				index.NewStore().Metrics(),
				health.NewProber(index.NewStore(), health.Options{}).Metrics(),
				gateways.NewController(nil, nil, gateways.Options{}).Metrics(),
			},
		},
	}
}

func standard() []prometheus.Collector {
	return []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}

// registered describes the metrics of a registry.
type registered struct{ metrics.RegistererGatherer }

// Describe implements prometheus.Collector.
func (r registered) Describe(ch chan<- *prometheus.Desc) {
	if c, ok := r.RegistererGatherer.(prometheus.Collector); ok {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (registered) Collect(chan<- prometheus.Metric) {}

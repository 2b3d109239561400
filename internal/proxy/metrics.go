// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

// PodMonitorOptions configure a group's PodMonitor.
type PodMonitorOptions struct {
	// Labels are the user's. The proxy's labels take precedence.
	Labels map[string]string

	// Interval between scrapes, in Prometheus' syntax. Empty means Prometheus' default.
	Interval string
}

// PodMonitor builds the PodMonitor for both containers of the group's pods. Its kind belongs to
// the Prometheus operator (monitoring.coreos.com/v1), whose module is not worth importing for
// these few fields.
func PodMonitor(o Options) *unstructured.Unstructured {
	labels := map[string]any{}
	for k, v := range o.PodMonitor.Labels {
		labels[k] = v
	}
	for k, v := range o.Labels() {
		labels[k] = v
	}
	selector := map[string]any{}
	for k, v := range o.PodLabels() {
		selector[k] = v
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "monitoring.coreos.com/v1",
		"kind":       "PodMonitor",
		"metadata":   map[string]any{"name": o.Name, "namespace": o.Namespace, "labels": labels},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": selector},
			// Without these labels, metrics of all groups would look alike.
			"podTargetLabels": []any{meta.LabelEndpoints, meta.LabelDirection},
			"podMetricsEndpoints": []any{
				scrape(portNameAgent, o.PodMonitor.Interval),
				scrape(portNameContainerboot, o.PodMonitor.Interval),
			},
		},
	}}
}

func scrape(port, interval string) map[string]any {
	s := map[string]any{"port": port, "path": sidecar.PathMetrics}
	if interval != "" {
		s["interval"] = interval
	}
	return s
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// PodMonitorOptions of a group's PodMonitor.
type PodMonitorOptions struct {
	// Labels are the user's. Ours win.
	Labels map[string]string

	// Interval between scrapes, as Prometheus writes it. Empty means
	// Prometheus' own.
	Interval string
}

// PodMonitor has the Prometheus operator scrape both containers of the group's
// pods. Its kind is that operator's (monitoring.coreos.com/v1); its module would
// bring more than these few fields are worth.
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
			// Else metrics of all groups would look alike.
			"podTargetLabels": []any{meta.LabelEndpoints, meta.LabelDirection},
			"podMetricsEndpoints": []any{
				scrape(portNameAgent, o.PodMonitor.Interval),
				scrape(portNameContainerboot, o.PodMonitor.Interval),
			},
		},
	}}
}

func scrape(port, interval string) map[string]any {
	s := map[string]any{"port": port, "path": PathMetrics}
	if interval != "" {
		s["interval"] = interval
	}
	return s
}

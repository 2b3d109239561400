// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// setPodOptions takes over what the user says of the pods.
func setPodOptions(o *proxy.Options, p gatewayv1alpha1.Proxy) {
	o.Resources = p.Resources
	o.AgentResources = p.AgentResources
	o.NodeSelector = p.NodeSelector
	o.Tolerations = p.Tolerations
	o.Affinity = p.Affinity
	o.Spread = p.TopologySpreadConstraints
	o.PriorityClassName = p.PriorityClassName
	o.ImagePullSecrets = p.ImagePullSecrets
	o.PodAnnotations = p.Annotations
	o.AccountAnnotations = p.ServiceAccountAnnotations
	o.ExtraPodLabels = labelsOf(p.Labels)
	for _, e := range p.Env {
		o.Env = append(o.Env, corev1.EnvVar{Name: e.Name, Value: e.Value, ValueFrom: envSource(e.ValueFrom)})
	}
	o.SecurityContext = securityContext(ptr.Deref(p.SecurityContext, gatewayv1alpha1.PodSecurityContext{}))
	o.Metrics = p.Metrics != nil && ptr.Deref(p.Metrics.Enabled, true)
	if wantsPodMonitor(p) {
		o.PodMonitor = proxy.PodMonitorOptions{Labels: labelsOf(p.Metrics.PodMonitor.Labels), Interval: p.Metrics.PodMonitor.Interval}
	}
}

func wantsPodMonitor(p gatewayv1alpha1.Proxy) bool {
	return p.Metrics != nil && ptr.Deref(p.Metrics.Enabled, true) && p.Metrics.PodMonitor != nil
}

func labelsOf(in map[string]gatewayv1alpha1.LabelValue) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = string(v)
	}
	return out
}

func envSource(s *gatewayv1alpha1.EnvVarSource) *corev1.EnvVarSource {
	if s == nil {
		return nil
	}
	f := s.FieldRef.DeepCopy()
	if f != nil && f.APIVersion == "" {
		// The API server's default. Without it the object would differ from
		// what is stored.
		f.APIVersion = "v1"
	}
	return &corev1.EnvVarSource{SecretKeyRef: s.SecretKeyRef, ConfigMapKeyRef: s.ConfigMapKeyRef, FieldRef: f}
}

func securityContext(s gatewayv1alpha1.PodSecurityContext) corev1.PodSecurityContext {
	c := corev1.PodSecurityContext{
		RunAsUser:          s.RunAsUser,
		RunAsGroup:         s.RunAsGroup,
		FSGroup:            s.FSGroup,
		SupplementalGroups: s.SupplementalGroups,
	}
	if l := s.SELinuxOptions; l != nil {
		c.SELinuxOptions = &corev1.SELinuxOptions{Level: l.Level, Type: l.Type}
	}
	return c
}

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
	o.PodSysctl = p.Forwarding == gatewayv1alpha1.ForwardingPodSysctl
	o.Metrics = p.Metrics != nil && ptr.Deref(p.Metrics.Enabled, true)
	if wantsPodMonitor(p) {
		o.PodMonitor = proxy.PodMonitorOptions{Labels: labelsOf(p.Metrics.PodMonitor.Labels), Interval: p.Metrics.PodMonitor.Interval}
	}
}

// setPolicyOptions says who may connect to the pods. Targets whose endpoint names
// clients have a rule of their own, the others share one.
func setPolicyOptions(o *proxy.Options, p *gatewayv1alpha1.ProxyNetworkPolicy, t *egressPlan) {
	if p == nil {
		return
	}
	o.NetworkPolicy.Metrics = p.Metrics
	if o.Direction != proxy.DirectionEgress {
		return
	}
	common := proxy.PolicyTarget{Clients: p.Clients}
	own := map[string]proxy.PolicyTarget{}
	for _, t := range t.targets {
		if t.ProxyPort == 0 {
			continue
		}
		port := proxy.PolicyPort{Port: t.ProxyPort, Protocol: t.Protocol}
		if len(t.clients) == 0 {
			common.Ports = append(common.Ports, port)
			continue
		}
		own[t.endpoint] = proxy.PolicyTarget{Clients: t.clients, Ports: append(own[t.endpoint].Ports, port)}
	}
	o.NetworkPolicy.Targets = append(o.NetworkPolicy.Targets, common)
	for _, name := range sortedKeys(own) {
		o.NetworkPolicy.Targets = append(o.NetworkPolicy.Targets, own[name])
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

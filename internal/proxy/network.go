// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Names of ports, for metrics scrapers.
const (
	portNameAgent         = "agent"
	portNameContainerboot = "tailscale"
)

// Service builds the Service that governs the StatefulSet. It is headless and carries no
// traffic of the tailnet; Prometheus scrapes its ports.
func Service(o Options) *corev1.Service {
	ports := make([]corev1.ServicePort, 0, len(Ports()))
	for _, p := range Ports() {
		ports = append(ports, servicePort(p.Name, p.ContainerPort))
	}
	om := o.objectMeta()
	om.Name = o.Pods.ServiceName
	if o.Metrics {
		om.Labels[meta.LabelMetrics] = "true"
	}
	return &corev1.Service{
		ObjectMeta: om,
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 o.PodLabels(),
			Ports:                    ports,
		},
	}
}

func servicePort(name string, n int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: n, TargetPort: intstr.FromString(name), Protocol: corev1.ProtocolTCP}
}

// PodDisruptionBudget builds the budget that lets evictions remove one proxy at a time, and any
// that is not ready. A single pod has no budget.
func PodDisruptionBudget(o Options) *policyv1.PodDisruptionBudget {
	if o.Pods.Replicas < 2 {
		return nil
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: o.objectMeta(),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: o.PodLabels()},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

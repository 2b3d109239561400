// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	portNameWireGuard = "wireguard"

	// envWireGuardPort is the port of tailscaled (tailscale.com cmd/tailscaled, defaultPort).
	envWireGuardPort = "PORT"
)

// wireGuardPort is the port on which tailscaled receives peers' packets in a pod with static
// endpoints: the user's, if it is a number.
func (o Options) wireGuardPort() int32 {
	for _, e := range o.Pods.Env {
		if n, err := strconv.ParseUint(e.Value, 10, 16); e.Name == envWireGuardPort && err == nil && n > 0 {
			return int32(n)
		}
	}
	return PortWireGuard
}

// listenStatically gives tailscaled a fixed port, which a Service can lead to.
func listenStatically(o Options, c *corev1.Container) {
	n := o.wireGuardPort()
	c.Env = append(c.Env, corev1.EnvVar{Name: envWireGuardPort, Value: strconv.Itoa(int(n))})
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: portNameWireGuard, ContainerPort: n, Protocol: corev1.ProtocolUDP})
}

// ListensStatically reports whether pods have the port that static endpoints lead to.
func ListensStatically(p *corev1.PodSpec) bool {
	return slices.ContainsFunc(p.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == portNameWireGuard })
	})
}

// StaticServiceName is the name of the Service that leads to one pod from the nodes' addresses.
func StaticServiceName(machine string) string { return machine + "-direct" }

// StaticServices builds a Service of type NodePort for each pod, or none without static
// endpoints. Tailscale's operator builds the same (cmd/k8s-operator/proxygroup.go of
// tailscale.com v1.102.5, pgNodePortService). Kubernetes chooses the ports, which stay while a
// Service exists. Every node leads to the pod, wherever it runs. A pod that is not ready may
// have peers already.
func StaticServices(o Options) []*corev1.Service {
	if o.Pods.StaticEndpoints == nil {
		return nil
	}
	out := make([]*corev1.Service, 0, o.Pods.Replicas)
	for i := range o.Pods.Replicas {
		pod := names.Machine(o.Name, i)
		selector := o.PodLabels()
		selector[appsv1.StatefulSetPodNameLabel] = pod
		out = append(out, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: StaticServiceName(pod), Namespace: o.Namespace, Labels: o.Labels()},
			Spec: corev1.ServiceSpec{
				Type:                     corev1.ServiceTypeNodePort,
				Selector:                 selector,
				ExternalTrafficPolicy:    corev1.ServiceExternalTrafficPolicyCluster,
				IPFamilyPolicy:           ptr.To(corev1.IPFamilyPolicyPreferDualStack),
				PublishNotReadyAddresses: true,
				Ports: []corev1.ServicePort{{
					Name: portNameWireGuard, Protocol: corev1.ProtocolUDP,
					Port: o.wireGuardPort(), TargetPort: intstr.FromInt32(o.wireGuardPort()),
				}},
			},
		})
	}
	return out
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestStaticEndpoints(t *testing.T) {
	cases := map[string]struct {
		reason string
		env    []v1alpha1.EnvVar
		want   int32
	}{
		"Default": {reason: "Tailscaled has its usual port.", want: PortWireGuard},
		"Users":   {reason: "The user's port is the port.", env: []v1alpha1.EnvVar{{Name: "PORT", Value: "5555"}}, want: 5555},
		"Bad":     {reason: "A random port leads nowhere.", env: []v1alpha1.EnvVar{{Name: "PORT", Value: "0"}}, want: PortWireGuard},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Pods.Replicas, o.Pods.StaticEndpoints, o.Pods.Env = 2, &v1alpha1.StaticEndpoints{}, tc.env
			services := StaticServices(o)
			if len(services) != 2 {
				t.Fatalf("want a Service for each pod, got %d", len(services))
			}
			p := services[1].Spec.Ports[0]
			if services[1].Spec.Type != corev1.ServiceTypeNodePort || p.Protocol != corev1.ProtocolUDP || p.TargetPort.IntVal != tc.want {
				t.Errorf("%s got %s %s %d", tc.reason, services[1].Spec.Type, p.Protocol, p.TargetPort.IntVal)
			}
			c := StatefulSet(o, images()).Spec.Template.Spec.Containers[0]
			i := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Protocol == corev1.ProtocolUDP })
			if i < 0 || c.Ports[i].ContainerPort != tc.want {
				t.Errorf("%s the container's ports are %v", tc.reason, c.Ports)
			}
			rules := NetworkPolicy(o).Spec.Ingress
			last := rules[len(rules)-1]
			if len(last.From) > 0 || len(last.Ports) != 1 || last.Ports[0].Port.IntVal != tc.want || *last.Ports[0].Protocol != corev1.ProtocolUDP {
				t.Errorf("%s peers from anywhere may use the port alone: %v", tc.reason, last)
			}
		})
	}
	if got := StaticServices(options()); got != nil {
		t.Errorf("a group without static endpoints has no such Services: %v", got)
	}
	for _, e := range StatefulSet(options(), images()).Spec.Template.Spec.Containers[0].Env {
		if e.Name == envWireGuardPort {
			t.Errorf("pods without static endpoints stay as they are, and have port %s", e.Value)
		}
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

func TestStatefulSetKernel(t *testing.T) {
	type container struct {
		args       []string
		privileged bool
		add        []corev1.Capability
	}
	agent := container{add: []corev1.Capability{"NET_ADMIN"}}
	tailscale := container{add: []corev1.Capability{"NET_ADMIN", "NET_RAW", "MKNOD"}}
	check := container{args: []string{"check"}, add: tailscale.add}
	checkServices := container{args: []string{"check", "--services"}, add: tailscale.add}
	cases := map[string]struct {
		reason     string
		direction  v1alpha1.Direction
		forwarding v1alpha1.Forwarding
		kernel     *v1alpha1.KernelSettings
		want       map[string]container
		sysctls    int
	}{
		"Ingress": {
			reason:    "Only the container that writes sysctls is privileged",
			direction: v1alpha1.DirectionIngress,
			want:      map[string]container{ContainerNetwork: {args: []string{"network"}, privileged: true}, ContainerCheck: checkServices, ContainerAgent: agent, ContainerTailscale: tailscale},
		},
		"Egress": {
			reason:    "Egress is guarded against packets that leave on the pod network",
			direction: v1alpha1.DirectionEgress,
			want:      map[string]container{ContainerNetwork: {args: []string{"network", "--guard"}, privileged: true}, ContainerCheck: check, ContainerAgent: agent, ContainerTailscale: tailscale},
		},
		"IngressPodSysctl": {
			reason:     "With the pod's sysctl, no privileged container is needed",
			direction:  v1alpha1.DirectionIngress,
			forwarding: v1alpha1.ForwardingPodSysctl,
			want:       map[string]container{ContainerCheck: checkServices, ContainerAgent: agent, ContainerTailscale: tailscale},
			sysctls:    1,
		},
		"EgressPodSysctl": {
			reason:     "The guard needs no privileges, and is always present",
			direction:  v1alpha1.DirectionEgress,
			forwarding: v1alpha1.ForwardingPodSysctl,
			want: map[string]container{
				ContainerNetwork:   {args: []string{"network", "--guard"}, add: []corev1.Capability{"NET_ADMIN"}},
				ContainerCheck:     check,
				ContainerAgent:     agent,
				ContainerTailscale: tailscale,
			},
			sysctls: 1,
		},
		"NotPrivileged": {
			reason:     "False is the default",
			direction:  v1alpha1.DirectionIngress,
			forwarding: v1alpha1.ForwardingPodSysctl,
			kernel:     &v1alpha1.KernelSettings{Privileged: ptr.To(false)},
			want:       map[string]container{ContainerCheck: checkServices, ContainerAgent: agent, ContainerTailscale: tailscale},
			sysctls:    1,
		},
		"Privileged": {
			reason:     "The check has the rights of the container that it checks for, and the agent has no more than before",
			direction:  v1alpha1.DirectionIngress,
			forwarding: v1alpha1.ForwardingPodSysctl,
			kernel:     &v1alpha1.KernelSettings{Privileged: ptr.To(true)},
			want: map[string]container{
				ContainerCheck:     {args: []string{"check", "--services"}, privileged: true},
				ContainerAgent:     agent,
				ContainerTailscale: {privileged: true},
			},
			sysctls: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Pods.Networking, o.Pods.Direction, o.Pods.Forwarding, o.Pods.Kernel = v1alpha1.NetworkingKernel, tc.direction, tc.forwarding, tc.kernel
			o.Pods.SecurityContext = &v1alpha1.PodSecurityContext{RunAsUser: ptr.To[int64](1000)}
			pod := StatefulSet(o, images()).Spec.Template.Spec
			got := map[string]container{}
			for _, c := range append(pod.InitContainers, pod.Containers...) {
				s := c.SecurityContext
				k := container{args: c.Args, privileged: ptr.Deref(s.Privileged, false)}
				if s.Capabilities != nil {
					k.add = s.Capabilities.Add
					if diff := cmp.Diff([]corev1.Capability{"ALL"}, s.Capabilities.Drop); diff != "" {
						t.Errorf("%s: all other capabilities are dropped: -want, +got:\n%s", c.Name, diff)
					}
				}
				got[c.Name] = k
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(container{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if got := pod.InitContainers[len(pod.InitContainers)-1].Name; got != ContainerAgent {
				t.Errorf("the sidecar must start last of the init containers, got %s", got)
			}
			if s := pod.SecurityContext; *s.RunAsUser != 0 || *s.RunAsNonRoot || len(s.Sysctls) != tc.sysctls {
				t.Errorf("want both containers as root, and %d sysctls, got %v", tc.sysctls, s)
			}
		})
	}
}

// TestStatefulSetFirewallMode checks that the user's packet filter takes precedence, and that the
// default works in an image without the iptables binary.
func TestStatefulSetFirewallMode(t *testing.T) {
	mode := func(o Options) []string {
		var out []string
		for _, e := range StatefulSet(o, images()).Spec.Template.Spec.Containers[0].Env {
			if e.Name == envFirewallMode {
				out = append(out, e.Value)
			}
		}
		return out
	}
	o := options()
	if diff := cmp.Diff([]string(nil), mode(o)); diff != "" {
		t.Errorf("Userspace needs none: -want, +got:\n%s", diff)
	}
	o.Pods.Networking = v1alpha1.NetworkingKernel
	if diff := cmp.Diff([]string{"auto"}, mode(o)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	o.Pods.Env = []v1alpha1.EnvVar{{Name: envFirewallMode, Value: "iptables"}}
	if diff := cmp.Diff([]string{"iptables"}, mode(o)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestCheckResources checks that the check gets the devices of the tailscale container, which a
// device plugin gives to the containers that request its resource.
func TestCheckResources(t *testing.T) {
	o := options()
	o.Pods.Networking = v1alpha1.NetworkingKernel
	o.Pods.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"squat.ai/tun": resource.MustParse("1")}}
	pod := StatefulSet(o, images()).Spec.Template.Spec
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		want := c.Name == ContainerCheck || c.Name == ContainerTailscale
		if _, got := c.Resources.Limits["squat.ai/tun"]; got != want {
			t.Errorf("%s: has the device: %t, want %t", c.Name, got, want)
		}
	}
	o.Pods.Networking, o.Pods.Kernel = v1alpha1.NetworkingUserspace, &v1alpha1.KernelSettings{Privileged: ptr.To(true)}
	pod = StatefulSet(o, images()).Spec.Template.Spec
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if c.Name == ContainerCheck || c.SecurityContext.Privileged != nil {
			t.Errorf("%s: Userspace networking needs no privileges and no check", c.Name)
		}
	}
}

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// envFirewallMode says by which packet filter tailscaled and containerboot work.
const envFirewallMode = "TS_DEBUG_FIREWALL_MODE"

// Arguments of the agent's image that prepare a pod's network.
const (
	argNetwork = "network"

	// argGuard has packets dropped that are translated for a target in the
	// tailnet, and would leave by anything but the tailnet's interface.
	argGuard = "--guard"
)

// kernel makes the tailscale container one that routes by the kernel. It makes
// /dev/net/tun by itself where there is none (cmd/containerboot, ensureTunFile),
// so it need not be privileged.
func kernel(o Options, c *corev1.Container) {
	c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN", "NET_RAW", "MKNOD"}
	if o.egress() {
		// Containerboot takes the directory, and finds its file there.
		c.Env = append(c.Env, corev1.EnvVar{Name: "TS_EGRESS_PROXIES_CONFIG_PATH", Value: DirProxiesConfig})
	} else {
		c.Env = append(c.Env, corev1.EnvVar{Name: "TS_INGRESS_PROXIES_CONFIG_PATH", Value: FileIngressConfig})
	}
	// By default tailscaled takes iptables where its binary is, whether the kernel
	// has it or not. auto takes what the pod's network has rules of, else
	// nftables, else iptables (util/linuxfw/detector.go), and needs no binary.
	c.Env = withDefault(o, c.Env, envFirewallMode, "auto")
}

// kernelSecurityContext has both containers run as root: tailscaled must, and lets
// only its own user change its configuration.
func kernelSecurityContext(o Options) *corev1.PodSecurityContext {
	s := ptr.Deref(o.Pods.SecurityContext, tailnetv1alpha1.PodSecurityContext{})
	c := &corev1.PodSecurityContext{
		RunAsNonRoot:       ptr.To(false),
		RunAsUser:          ptr.To[int64](0),
		RunAsGroup:         ptr.To[int64](0),
		FSGroup:            ptr.To(ptr.Deref(s.FSGroup, uid)),
		SupplementalGroups: s.SupplementalGroups,
		SELinuxOptions:     seLinuxOptions(s),
		SeccompProfile:     &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	c.Sysctls = dnsSysctls(o)
	if o.podSysctl() {
		c.Sysctls = append(c.Sysctls, corev1.Sysctl{Name: "net.ipv4.ip_forward", Value: "1"})
	}
	return c
}

// network is the init container that prepares the pod's network: for proxies that
// are configured by files containerboot does not turn on IP forwarding.
func network(o Options, img Images) []corev1.Container {
	if !o.kernel() || o.podSysctl() && !o.egress() {
		return nil
	}
	c := corev1.Container{
		Name:      ContainerNetwork,
		Image:     img.Agent,
		Args:      []string{argNetwork},
		Resources: requests("10m", "32Mi"),
		// Only a privileged container may write to /proc/sys.
		SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true), ReadOnlyRootFilesystem: ptr.To(true)},
	}
	if o.Pods.AgentResources != nil {
		c.Resources = *o.Pods.AgentResources
	}
	if o.egress() {
		c.Args = append(c.Args, argGuard)
	}
	if o.podSysctl() {
		c.SecurityContext = unprivileged()
		c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}
	return []corev1.Container{c}
}
